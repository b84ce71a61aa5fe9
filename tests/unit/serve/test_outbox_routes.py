"""The routes about triggers, endpoints and deliveries: what they show, change and never show."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update
from standardwebhooks.webhooks import Webhook
from starlette.testclient import TestClient

from strandline.app.deliveries import fill
from strandline.catalog import Catalog, claim_deliveries, enqueue_deliveries, record_outcomes
from strandline.catalog.tables import audit_log, deliveries
from strandline.model.deliveries import Attempt, NewDelivery, Outcome
from strandline.model.endpoints import Ordering
from strandline.serve.routes import make_routes
from strandline.serve.served import Served
from tests.events import EventLog, Fired
from tests.receiver import SECRET, Receiver, receiving_in_thread
from tests.unit.declare.publishing import edited
from tests.unit.serve.builders import OPERATE, READ, bearer, serving

ALERT = "large_trade_alert"
TOKEN = "a-token-of-the-desk-that-nobody-may-see"
PATH = "/services/T000/a-part-of-the-address-that-nobody-may-see"
KEYS = f"""
settings:
  serve:
    keys:
      dashboards: {{role: read, key: {READ}}}
      ci: {{role: operate, key: {OPERATE}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    http: TestClient
    served: Served
    receiver: Receiver
    woken: list[str]

    @property
    def catalog(self) -> Catalog:
        return self.served.workspace.catalog

    def get(self, path: str, **parameters: Any) -> Any:
        answered = self.http.get(path, params=parameters or None)
        assert answered.status_code == 200, answered.text
        return answered.json()

    def end(self, status: str) -> None:
        """As if every delivery had ended like this."""
        with self.catalog.writing() as connection:
            connection.execute(update(deliveries).values(status=status, next_at=None))

    def audited(self) -> list[tuple[str, dict[str, Any]]]:
        with self.catalog.reading() as connection:
            rows = connection.execute(select(audit_log.c.verb, audit_log.c.detail).order_by(audit_log.c.id))
            return [(row.verb, row.detail) for row in rows]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    monkeypatch.setenv("DESK", TOKEN)
    with receiving_in_thread() as receiver:
        url = receiver.url.replace("/hook", PATH)
        more = '\n    allow: [127.0.0.0/8]\n    headers: {x-desk: "desk ${DESK}"}\n    ordering: "parallel'
        text = edited(("https://ops.example/hook", f'{url}"{more}'))
        (tmp_path / "strandline.yaml").write_text(text + KEYS)
        with serving(tmp_path, routes=make_routes()) as (http, served):
            woken: list[str] = []
            served.owed = lambda: woken.append("owed")
            owed = [
                NewDelivery(
                    event_id=f"event-{key}",
                    event_type="MATCH",
                    trigger=ALERT,
                    endpoint="ops",
                    key=key,
                    source_timestamp=1,
                    body=b"{}",
                )
                for key in ("a", "b", "c")
            ]
            enqueue_deliveries(served.workspace.catalog, ALERT, None, ("table", 0), owed)
            http.headers.update(bearer(OPERATE))
            yield Desk(http=http, served=served, receiver=receiver, woken=woken)


def ids(document: Any) -> list[str]:
    return [delivery["key"] for delivery in document["deliveries"]]


def test_deliveries_are_listed_newest_first_in_parts_and_by_what_is_asked(desk: Desk) -> None:
    first = desk.get("/v1/deliveries", limit=2)
    rest = desk.get("/v1/deliveries", limit=2, after=first["next"])
    dead = desk.get("/v1/deliveries", status="dead")
    late = desk.get("/v1/deliveries", since="2999-01-01")

    assert (ids(first), ids(rest), rest["next"]) == (["c", "b"], ["a"], None)
    assert first["counts"] == {"pending": 3}
    assert (ids(dead), ids(late)) == ([], [])
    assert ids(desk.get("/v1/deliveries", endpoint="ops", trigger=ALERT)) == ["c", "b", "a"]


def test_one_delivery_shows_what_came_of_each_attempt(desk: Desk) -> None:
    (claim, *_) = claim_deliveries(desk.catalog, "ops", "here", 60.0, 10, Ordering.PARALLEL)
    failed = Outcome(delivered=False, status_code=500, error="It answered 500.", seconds=0.25)
    record_outcomes(desk.catalog, "ops", [Attempt(claim=claim, outcome=failed, pause_seconds=5)])

    shown = desk.get(f"/v1/deliveries/{claim.id}")

    assert (shown["id"], shown["attempts"], shown["status"]) == (claim.id, 1, "pending")
    (attempt,) = shown["attempted"]
    assert (attempt["status_code"], attempt["error"], attempt["seconds"]) == (500, "It answered 500.", 0.25)


def test_a_replayed_delivery_is_owed_again_at_once(desk: Desk) -> None:
    name = desk.get("/v1/deliveries", limit=1)["deliveries"][0]["id"]
    early = desk.http.post(f"/v1/deliveries/{name}/replay")
    desk.end("delivered")

    replayed = desk.http.post(f"/v1/deliveries/{name}/replay")

    assert (early.status_code, early.json()["error"]["slug"]) == (409, "delivery-not-ended")
    assert (replayed.status_code, replayed.json()["status"]) == (200, "pending")
    assert desk.woken == ["owed"]
    assert desk.audited() == [("replay", {"id": name, "actor": "ci"})]


def test_a_range_is_replayed_by_what_is_named_and_never_all_by_mistake(desk: Desk) -> None:
    desk.end("dead")
    empty = desk.http.post("/v1/deliveries/replay", json={})
    unset = [
        desk.http.post("/v1/deliveries/replay", json={"status": "dead", word: ""})
        for word in ("since", "until")
    ]
    none = desk.http.post("/v1/deliveries/replay", json={"status": "delivered"})
    dead = desk.http.post("/v1/deliveries/replay", json={"status": "dead", "endpoint": "ops"})

    assert (empty.status_code, empty.json()["error"]["slug"]) == (400, "bad-body")
    assert [(a.status_code, a.json()["error"]["slug"]) for a in unset] == [(400, "bad-instant")] * 2
    assert (none.json()["replayed"], dead.json()["replayed"]) == (0, 3)
    assert [detail["actor"] for _, detail in desk.audited()] == ["ci", "ci"]


def test_an_endpoint_is_disabled_and_enabled_with_who_did_it(desk: Desk) -> None:
    off = desk.http.post("/v1/endpoints/ops/disable", json={"reason": "maintenance"})
    while_off = {e["endpoint"]: e for e in desk.get("/v1/endpoints")["endpoints"]}["ops"]
    on = desk.http.post("/v1/endpoints/ops/enable")
    after = {e["endpoint"]: e for e in desk.get("/v1/endpoints")["endpoints"]}["ops"]

    assert off.json() == {"schema": "strandline/endpoint/v1", "endpoint": "ops", "state": "disabled"}
    assert (while_off["state"], while_off["reason"]) == ("disabled", "maintenance")
    assert while_off["deliveries"] == {"held": 3}
    assert (on.json()["due"], after["state"], after["deliveries"]) == (3, "enabled", {"pending": 3})
    assert desk.audited() == [
        ("disable", {"endpoint": "ops", "reason": "maintenance", "actor": "ci"}),
        ("enable", {"endpoint": "ops", "actor": "ci"}),
    ]


def test_an_endpoint_is_tested_with_a_signed_message_that_is_no_delivery(desk: Desk) -> None:
    answered = desk.http.post("/v1/endpoints/ops/test")

    headers, body = desk.receiver.received[0]
    assert (answered.status_code, answered.json()["delivered"]) == (200, True)
    assert answered.json()["status_code"] == 204
    Webhook(SECRET).verify(body, headers)
    assert json.loads(body)["event_type"] == "TEST"
    assert desk.get("/v1/deliveries")["counts"] == {"pending": 3}
    assert desk.audited() == [("test", {"endpoint": "ops", "actor": "ci"})]


def test_an_endpoint_whose_secret_is_not_set_is_not_tested(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPS_SECRET")

    answered = desk.http.post("/v1/endpoints/ops/test")

    assert (answered.status_code, answered.json()["error"]["slug"]) == (400, "secret-not-set")


@pytest.mark.parametrize("verb", ["enable", "disable", "test"])
def test_an_endpoint_that_does_not_exist_is_not_found(desk: Desk, verb: str) -> None:
    answered = desk.http.post(f"/v1/endpoints/opps/{verb}")

    assert (answered.status_code, answered.json()["error"]["slug"]) == (404, "unknown-endpoint")
    assert desk.audited() == []


def test_triggers_tell_who_is_told_and_what_became_of_it(desk: Desk) -> None:
    listed = desk.get("/v1/triggers")["triggers"]
    one = desk.get(f"/v1/triggers/{ALERT}")

    assert [trigger["trigger"] for trigger in listed] == [ALERT, "costly"]
    assert (one["endpoints"], one["deliveries"]) == (["ops"], {"pending": 3})


def test_no_answer_shows_a_secret_or_the_path_of_an_address(desk: Desk) -> None:
    shown = [
        desk.http.get(path).text
        for path in (
            "/v1/endpoints",
            "/v1/triggers",
            "/v1/deliveries",
            "/v1/status",
            "/v1/plan",
            "/metrics",
        )
    ]
    shown.append(desk.http.post("/v1/endpoints/ops/test").text)
    shown += [str(detail) for detail in desk.audited()]

    for secret in (SECRET, TOKEN, PATH, OPERATE, READ):
        assert not any(secret in text for text in shown)
    assert "http://127.0.0.1:" in shown[0]


def test_who_may_only_read_changes_nothing(desk: Desk) -> None:
    desk.http.headers.update(bearer(READ))
    for path in ("deliveries/x/replay", "deliveries/replay", "endpoints/ops/disable", "endpoints/ops/test"):
        answered = desk.http.post(f"/v1/{path}", json={})
        assert (answered.status_code, answered.json()["error"]["slug"]) == (403, "role-refused")

    assert desk.get("/v1/deliveries")["counts"] == {"pending": 3}
    assert desk.audited() == []
    assert desk.receiver.received == []


def test_a_delivery_that_is_no_longer_kept_is_owed_again_from_its_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`maintain` removes what ended longer ago than `settings.keep`. The events stay."""
    monkeypatch.setenv("OPS_SECRET", SECRET)
    (tmp_path / "strandline.yaml").write_text(edited() + KEYS)
    with serving(tmp_path, routes=make_routes()) as (http, served):
        http.headers.update(bearer(OPERATE))
        catalog = served.workspace.catalog
        fill(served.workspace)
        log = EventLog(trigger=ALERT, uri=Path(served.workspace.lake.table(ALERT)))
        log.append(Fired(key="a"), Fired(key="b"))
        fill(served.workspace)
        first = http.get("/v1/deliveries", params={"trigger": ALERT}).json()
        with catalog.writing() as connection:
            connection.execute(delete(deliveries))

        one = http.post(f"/v1/deliveries/{first['deliveries'][0]['id']}/replay")
        rest = http.post("/v1/deliveries/replay", json={"trigger": ALERT, "since": "2024-01-01"})
        again = http.get("/v1/deliveries", params={"trigger": ALERT}).json()

    assert first["counts"] == again["counts"] == {"pending": 2}
    assert (one.status_code, rest.json()["replayed"]) == (200, 1)
    assert {d["id"] for d in first["deliveries"]} == {d["id"] for d in again["deliveries"]}
