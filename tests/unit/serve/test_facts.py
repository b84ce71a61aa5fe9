"""Facts are posted over HTTP: kept before the answer, once for each key, by whoever may."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from strandline.app import receiving
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.app.workspace import Workspace
from strandline.catalog import finish_run, record_task, start_run
from strandline.catalog.tables import audit_log
from strandline.ingest.inbox import list_inbox, open_post, put_away
from strandline.model.dispatching import DispatcherState
from strandline.model.errors import CallError, OutsideError
from strandline.model.kind import NodeKind
from strandline.model.plan import Cause, Plan, Status, Strategy, TaskResult
from strandline.model.requests import RequestRecord, RequestStatus
from strandline.model.scope import NOTHING
from strandline.serve.declared import Route
from strandline.serve.facts import make_facts_route
from strandline.serve.served import Served
from tests.unit.serve.builders import INGEST, OPERATE, READ, bearer, serving

PROJECT = """
project: shop
sources:
  pushed: {http: {}}
  other: {http: {}}
"""
KEYS = f"""
settings:
  serve:
    keys:
      dashboards: {{role: read, key: {READ}}}
      feeds: {{role: ingest, key: {INGEST}, sources: [pushed]}}
      ci: {{role: operate, key: {OPERATE}}}
"""


@dataclass
class Dispatcher:
    """Executes a run when somebody waits for it: receives what waits, and records the run."""

    works: bool = True
    workspace: Workspace | None = None
    woken: int = 0
    records: dict[str, RequestRecord] = field(default_factory=dict)

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        assert (verb, request) == ("run", RunRequest())
        name = f"r{len(self.records)}"
        record = RequestRecord(
            request=name,
            verb=verb,
            arguments=None,
            actor=actor,
            status=RequestStatus.PENDING,
            created_at=datetime.now(UTC),
        )
        self.records[name] = record
        return record

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        if request not in self.records:
            raise CallError(f"There is no request `{request}`.", remedy="", slug="unknown-request")
        record = self.records[request]
        if seconds and self.works and not record.status.is_over:
            self.run()
            record = self.records[request] = replace(record, status=RequestStatus.DONE)
        return record

    def wake(self) -> None:
        self.woken += 1

    def state(self) -> DispatcherState:
        return DispatcherState(dispatching=self.works)

    def run(self) -> None:
        assert self.workspace is not None
        catalog, lake = self.workspace.catalog, self.workspace.lake
        for source in ("pushed", "other"):
            seen = list_inbox(lake.inbox(source))
            if not seen:
                continue
            run = f"run-{source}-{len(self.records)}-{self.woken}"
            start_run(catalog, run, "2026-03-01T00:00:00+00:00", "run")
            put_away(lake.inbox(source), [file.path for file in seen], datetime.now(UTC))
            record_task(catalog, run, done(source, len(seen)))
            finish_run(catalog, run, "done")


def done(source: str, rows: int) -> TaskResult:
    return TaskResult(
        node=source,
        kind=NodeKind("source"),
        cause=Cause.NEW_INPUT,
        strategy=Strategy.APPEND,
        reason="",
        scope=NOTHING,
        status=Status.DONE,
        rows_written=rows,
        input_versions={},
        counts={"received": rows},
    )


@contextmanager
def server(
    folder: Path, keys: str = "", *, works: bool = True
) -> Iterator[tuple[TestClient, Served, Dispatcher]]:
    (folder / "strandline.yaml").write_text(PROJECT + keys)
    dispatcher = Dispatcher(works=works)
    with serving(folder, routes=[make_facts_route()], work=lambda _: dispatcher) as (http, served):
        dispatcher.workspace = served.workspace
        yield http, served, dispatcher


def post(http: TestClient, body: bytes | str, to: str = "pushed", **headers: str) -> Any:
    headers = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return http.post(f"/v1/facts/{to}", content=body, headers=headers)


def bodies(served: Served, source: str = "pushed") -> list[bytes]:
    inbox = served.workspace.lake.inbox(source)
    return sorted(open_post(inbox.parent.parent / file.path)[1] for file in list_inbox(inbox))


def test_a_post_is_on_disk_when_it_is_answered_and_wakes_the_dispatcher(tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, dispatcher):
        answered = post(http, '[{"a": 1.0000000000000000001}, 2]', idempotency_key="k/1")

        assert answered.status_code == 202
        assert answered.json() == {
            "schema": "strandline/facts/v1",
            "source": "pushed",
            "received": 2,
            "position": ["k/1", 1, 1],
            "duplicate": False,
        }
        assert bodies(served) == [b'[{"a": 1.0000000000000000001}, 2]']
        assert dispatcher.woken == 1
        counted = [metric for metric in served.measures.read() if "facts_received_total" in metric.name]
        assert [(s.labels, s.value) for metric in counted for s in metric.samples] == [
            ({"source": "pushed"}, 2.0)
        ]


def test_the_same_key_is_received_once_and_another_body_is_a_conflict(tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, dispatcher):
        first = post(http, "[1]", idempotency_key="k").json()
        again = post(http, "[1]", idempotency_key="k")
        other = post(http, "[2]", idempotency_key="k")

        assert (again.status_code, again.json()) == (202, {**first, "duplicate": True})
        assert (other.status_code, other.json()["error"]["slug"]) == (409, "idempotency-key-taken")
        assert bodies(served) == [b"[1]"]
        assert dispatcher.woken == 1

    with server(tmp_path) as (http, served, _):  # another server, after a restart
        assert post(http, "[1]", idempotency_key="k").json()["duplicate"]
        assert post(http, "[2]", idempotency_key="k").status_code == 409


def test_two_posts_with_one_key_at_once_are_received_once(tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, _), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: post(http, f"[{n % 2}]", idempotency_key="k"), range(24)))

        assert len(bodies(served)) == 1
        first = bodies(served)[0]
        for n, answered in enumerate(answers):
            assert answered.status_code == (202 if f"[{n % 2}]".encode() == first else 409)
        assert sum(not a.json().get("duplicate", True) for a in answers) == 1


def test_lines_are_taken_as_ndjson_alone(tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, _):
        lines = '{"a": 1}\n\n{"a": 2}\n'

        taken = post(http, lines, content_type="application/x-ndjson; charset=utf-8", idempotency_key="l")
        refused = post(http, lines)

        assert (taken.json()["received"], taken.json()["position"]) == (2, ["l", 1, 1])
        assert (refused.status_code, refused.json()["error"]["slug"]) == (400, "not-json")
        assert len(bodies(served)) == 1


@pytest.mark.parametrize(
    ("status", "slug", "body", "to", "headers"),
    [
        (400, "not-json", "{", "pushed", {}),
        (400, "not-json", "", "pushed", {}),
        (400, "not-json", b"\xff", "pushed", {}),
        (400, "bad-idempotency-key", "1", "pushed", {"idempotency_key": ""}),
        (400, "bad-idempotency-key", "1", "pushed", {"idempotency_key": "x" * 201}),
        (400, "bad-idempotency-key", "1", "pushed", {"idempotency_key": "a b"}),
        (404, "unknown-source", "1", "nothing", {}),
        (413, "body-too-large", b"[" + b"1," * 100_000 + b"1]", "pushed", {}),
        (413, "body-too-large", b'"' + b"x" * (17 << 20) + b'"', "pushed", {}),
        (415, "wrong-content-type", "1", "pushed", {"content_type": "text/plain"}),
        (415, "wrong-content-type", "1", "pushed", {"content_encoding": "gzip"}),
    ],
)
def test_what_is_refused_leaves_nothing(
    status: int, slug: str, body: bytes | str, to: str, headers: dict[str, str], tmp_path: Path
) -> None:
    with server(tmp_path) as (http, served, dispatcher):
        answered = post(http, body, to, **headers)

        assert (answered.status_code, answered.json()["error"]["slug"]) == (status, slug)
        assert bodies(served) == []
        assert dispatcher.woken == 0
        assert post(http, "1").status_code == 202


def test_a_post_that_cannot_be_kept_is_refused_until_the_lake_can_be_written(tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, _):
        inbox = served.workspace.lake.inbox("pushed")
        inbox.parent.mkdir(parents=True)
        inbox.touch()
        refused = http.post("/v1/facts/pushed", json=1, headers={"idempotency-key": "k"})
        inbox.unlink()
        taken = http.post("/v1/facts/pushed", json=1, headers={"idempotency-key": "k"})

    assert (refused.status_code, refused.json()["error"]["slug"]) == (503, "lake-unwritable")
    assert (taken.status_code, taken.json()["duplicate"]) == (202, False)


def test_a_body_of_16_mib_is_taken(tmp_path: Path) -> None:
    with server(tmp_path) as (http, _served, _):
        assert post(http, b'"' + b"x" * ((16 << 20) - 2) + b'"').json()["received"] == 1


def test_a_key_posts_to_its_sources_alone(tmp_path: Path) -> None:
    with server(tmp_path, KEYS) as (http, served, _):
        assert post(http, "1").status_code == 401
        assert post(http, "1", **bearer(READ)).status_code == 403
        assert post(http, "1", **bearer(INGEST)).status_code == 202
        other = post(http, "1", "other", **bearer(INGEST))
        unknown = post(http, "1", "nothing", **bearer(INGEST))

        assert (other.status_code, other.json()["error"]["slug"]) == (403, "source-not-allowed")
        assert unknown.status_code == 403  # it does not say which sources there are
        assert bodies(served, "other") == []

    with server(tmp_path, KEYS.replace("[pushed]", "[pushed, other]")) as (
        http,
        _,
        _,
    ):  # what the remedy says
        assert post(http, "1", "other", **bearer(INGEST)).status_code == 202


def test_a_poster_that_waits_gets_the_run_that_has_published_its_facts(tmp_path: Path) -> None:
    with server(tmp_path) as (http, _served, _dispatcher):
        post(http, "1", "other")
        answered = http.post("/v1/facts/pushed?wait=5", json=[1], headers={"idempotency-key": "k"})

        assert answered.status_code == 200
        document = answered.json()
        assert document["position"] == ["k", 1, 1]
        assert document["run"].startswith("run-pushed")
        assert [(task["node"], task["status"]) for task in document["tasks"]] == [("pushed", "done")]
        again = http.post("/v1/facts/pushed?wait=5", json=[1], headers={"idempotency-key": "k"}).json()
        assert again == {**document, "duplicate": True}


def test_a_poster_waits_for_a_new_run_when_the_one_before_is_forgotten(tmp_path: Path) -> None:
    """Requests are kept for `settings.keep`. The next post may come later."""
    with server(tmp_path) as (http, _, dispatcher):
        http.post("/v1/facts/pushed?wait=5", json=[1])
        dispatcher.records.clear()
        dispatcher.woken += 1  # its next run has another name

        answered = http.post("/v1/facts/pushed?wait=5", json=[2])

        assert answered.status_code == 200
        assert answered.json()["run"]


def test_a_poster_whose_time_is_up_is_told_that_its_facts_are_safe(tmp_path: Path) -> None:
    with server(tmp_path, works=False) as (http, served, dispatcher):
        answers = [http.post("/v1/facts/pushed?wait=0.1", json=[n]) for n in range(3)]

        assert [(a.status_code, "run" in a.json()) for a in answers] == [(202, False)] * 3
        assert len(bodies(served)) == 3
        assert len(dispatcher.records) == 1  # they share the run that has not begun


@pytest.mark.parametrize("query", ["wait=301", "wait=-1", "wait=soon", "wit=1"])
def test_a_wrong_parameter_receives_nothing(query: str, tmp_path: Path) -> None:
    with server(tmp_path) as (http, served, _):
        answered = http.post(f"/v1/facts/pushed?{query}", json=1)

        assert (answered.status_code, answered.json()["error"]["slug"]) == (400, "bad-parameter")
        assert bodies(served) == []


def test_the_route_asks_for_the_role_of_feeds() -> None:
    route: Route = make_facts_route()

    assert (route.method, route.path, str(route.role)) == ("POST", "/v1/facts/{source}", "ingest")
    assert json.dumps(route.content_types) == '["application/json", "application/x-ndjson"]'


def test_what_a_run_has_published_is_timed_once(tmp_path: Path) -> None:
    def outcome(*sources: str) -> RunOutcome:
        plan = Plan(as_of=datetime.now(UTC), tasks=())
        return RunOutcome(run="r", plan=plan, results=tuple(done(source, 1) for source in sources))

    def count(served: Served) -> float:
        metric = next(m for m in served.measures.read() if m.name == "fact_to_publish_seconds")
        return next((s.value for s in metric.samples if s.suffix == "_count"), 0.0)

    with server(tmp_path) as (http, served, dispatcher):
        for source in ("pushed", "pushed", "other"):
            post(http, "1", source)
        served.receipts.time_published(served.workspace, outcome("pushed"), served.measures)
        waiting = count(served)
        dispatcher.run()
        post(http, "1")

        for sources in (("pushed",), ("pushed", "other"), ("other",)):
            served.receipts.time_published(served.workspace, outcome(*sources), served.measures)

        assert (waiting, count(served)) == (0.0, 3.0)


def test_the_audit_log_says_who_has_posted_with_one_line_for_many_posts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited(served: Served) -> list[dict[str, object]]:
        with served.workspace.catalog.reading() as connection:
            rows = connection.execute(select(audit_log.c.verb, audit_log.c.detail).order_by(audit_log.c.id))
            return [row.detail for row in rows if row.verb == "facts"]

    def unreachable(*_: object) -> None:
        raise OutsideError("The catalog is gone.", remedy="Wait.", slug="catalog-unreachable")

    with server(tmp_path, KEYS) as (http, served, _):
        post(http, "[1, 2]", **bearer(INGEST))
        post(http, "[3]", **bearer(INGEST))
        post(http, "[4]", **bearer(OPERATE), **{"idempotency-key": "k"})
        post(http, "[4]", **bearer(OPERATE), **{"idempotency-key": "k"})
        with monkeypatch.context() as patch:
            patch.setattr(receiving, "audit", unreachable)
            served.receipts.record_posters(served.workspace)
        assert audited(served) == []
        for _ in range(2):
            served.receipts.record_posters(served.workspace)

        assert sorted(audited(served), key=str) == [
            {"source": "pushed", "actor": "ci", "posts": 1, "messages": 1},
            {"source": "pushed", "actor": "feeds", "posts": 2, "messages": 3},
        ]
