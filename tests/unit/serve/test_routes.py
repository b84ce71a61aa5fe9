"""The routes about work and state: what they take, answer and refuse. No Spark is started."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import create_engine, text
from starlette.testclient import TestClient

from strandline.app.invalidate import Invalidated, InvalidateRequest
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.app.verify import VerifyRequest
from strandline.app.workspace import Workspace
from strandline.catalog import finish_run, start_run
from strandline.cli import main
from strandline.model.commits import Invalidation
from strandline.model.condition_json import from_row_filter
from strandline.model.dispatching import DispatcherState, Pause
from strandline.model.errors import OutsideError
from strandline.model.plan import Plan
from strandline.model.scope import Rows
from strandline.model.serving import Role
from strandline.model.verified import VerifiedDataset, VerifyOutcome
from strandline.serve.routes import make_routes
from strandline.serve.served import Served
from tests.unit.cli.builders import printed
from tests.unit.cli.lake_builder import write_lake
from tests.unit.serve.builders import AtOnce, bearer, serving

AT = datetime(2024, 1, 13, 8, 30, tzinfo=UTC)
OUTCOMES: dict[str, object] = {
    "run": RunOutcome(run="20240113T083000.000000-abcdef", plan=Plan(as_of=AT, tasks=()), results=()),
    "backfill": OutsideError("The disk is full.", remedy="Make room.", slug="disk-full"),
    "invalidate": Invalidated(
        invalidation=Invalidation(
            id="i-2", scope=Rows(where=from_row_filter({"id": {"_eq": 1}})), reason="reorg"
        ),
        dataset="orders",
        table_version=3,
        jobs=("customer_totals",),
        text="id = 1",
    ),
    "verify": VerifyOutcome(
        datasets=(
            VerifiedDataset(
                dataset="orders", result="equal", equal=True, compared_rows=3, input_versions={}, as_of=""
            ),
        )
    ),
}


@dataclass(slots=True, kw_only=True)
class Server:
    http: TestClient
    served: Served
    work: AtOnce
    folder: Path

    def get(self, path: str, **parameters: Any) -> Any:
        answered = self.http.get(path, params=parameters or None)
        assert answered.status_code == 200, answered.text
        return answered.json()

    def audited(self) -> list[tuple[str, dict[str, Any]]]:
        engine = create_engine(f"sqlite:///{self.folder}/.strandline/catalog.db")
        with engine.connect() as connection:
            rows = connection.execute(text("select verb, detail from audit_log order by id")).all()
        engine.dispose()
        return [(verb, json.loads(detail)) for verb, detail in rows]


@contextmanager
def serve_lake(folder: Path, lake: Path, outcomes: dict[str, object] = OUTCOMES) -> Iterator[Server]:
    shutil.copytree(lake, folder, dirs_exist_ok=True)
    made: list[AtOnce] = []

    def work(workspace: Workspace) -> AtOnce:
        made.append(AtOnce(workspace, outcomes))
        return made[0]

    with serving(folder, routes=make_routes(), work=work) as (http, served):
        yield Server(http=http, served=served, work=made[0], folder=folder)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lake")).folder


@pytest.fixture
def server(tmp_path: Path, lake: Path) -> Iterator[Server]:
    with serve_lake(tmp_path, lake) as made:
        yield made


def refused(answered: Any, status: int, slug: str) -> None:
    assert (answered.status_code, answered.json()["error"]["slug"]) == (status, slug), answered.text
    assert answered.json()["error"]["remedy"]


def test_a_run_is_accepted_and_its_request_says_how_it_ended(server: Server) -> None:
    body = {
        "select": ["+orders", "customer_totals"],
        "as_of": "2024-01-13T08:30:00Z",
        "accept_guard": ["orders"],
    }

    accepted = server.http.post("/v1/runs", json=body)
    ended = server.get(f"/v1/requests/{accepted.json()['request']}")

    assert accepted.status_code == 202
    assert accepted.json() == {
        "schema": "strandline/request/v1",
        "request": "request-0",
        "status": "pending",
    }
    assert server.work.requests == [
        RunRequest(select="+orders customer_totals", as_of=AT, accept_guard=("orders",))
    ]
    assert (ended["verb"], ended["actor"], ended["status"], ended["error"]) == (
        "run",
        "loopback",
        "done",
        None,
    )
    assert (ended["run"], ended["as_of"], ended["tasks"]) == (
        "20240113T083000.000000-abcdef",
        "2024-01-13T08:30:00.000000Z",
        [],
    )


def test_who_waits_gets_the_result_as_the_verb_prints_it(server: Server) -> None:
    ran = server.http.post("/v1/runs?wait=5")
    verified = server.http.post("/v1/verify?wait=5", json={"names": ["orders"]})

    assert (ran.status_code, verified.status_code) == (200, 200)
    assert ran.json()["status"] == "done"
    assert ran.json()["tasks"] == []
    assert verified.json()["datasets"][0]["result"] == "equal"
    assert server.work.requests == [RunRequest(), VerifyRequest(names=("orders",))]


def test_work_that_takes_longer_than_the_caller_waits_goes_on(tmp_path: Path, lake: Path) -> None:
    with serve_lake(tmp_path, lake, outcomes={}) as server:
        answered = server.http.post("/v1/runs?wait=0.1")

    assert (answered.status_code, answered.json()["status"]) == (202, "pending")


def test_work_that_failed_says_why(server: Server) -> None:
    answered = server.http.post("/v1/backfill?wait=5", json={"job": "customer_totals", "partitions": "all"})

    assert (answered.status_code, answered.json()["status"]) == (200, "failed")
    assert answered.json()["error"] == {
        "slug": "disk-full",
        "message": "The disk is full.",
        "remedy": "Make room.",
    }


def test_a_backfill_tells_its_tasks_and_a_dry_run_does_nothing(server: Server) -> None:
    body = {"job": "customer_totals", "partitions": "all", "reason": "a new rate"}

    dry = server.http.post("/v1/backfill", json={**body, "dry_run": True})
    accepted = server.http.post("/v1/backfill", json=body)

    assert (dry.status_code, dry.json()["schema"]) == (200, "strandline/plan/v1")
    assert accepted.status_code == 202
    assert [task["node"] for task in accepted.json()["tasks"]] == [t["node"] for t in dry.json()["tasks"]]
    assert "customer_totals" in [task["node"] for task in dry.json()["tasks"]]
    assert server.work.requests == [RunRequest(backfill="customer_totals", reason="a new rate")]


def test_an_invalidation_is_checked_then_handed_in(server: Server) -> None:
    body = {
        "dataset": "orders",
        "row_filter": {"id": {"gte": 1, "lte": 2}},
        "reason": "reorg",
        "source_event": {"tip": 7},
    }

    answered = server.http.post("/v1/invalidations?wait=5", json=body)

    assert answered.status_code == 200
    assert answered.json()["invalidations"][0]["jobs"] == ["customer_totals"]
    assert server.work.requests == [
        InvalidateRequest(
            dataset="orders",
            reason="reorg",
            row_filter={"id": {"gte": 1, "lte": 2}},
            source_event={"tip": 7},
        )
    ]


@pytest.mark.parametrize(
    ("path", "body", "status", "slug"),
    [
        ("/v1/runs", {"select": "ordres"}, 404, "unknown-name"),
        ("/v1/runs", {"as_of": "soon"}, 400, "bad-instant"),
        ("/v1/runs", {"as_of": ""}, 400, "bad-instant"),
        ("/v1/runs", {"select": " "}, 404, "unknown-name"),
        ("/v1/runs", {"select": [" ", "orders"], "accept_guard": [" "]}, 404, "unknown-name"),
        ("/v1/runs", {"quiet": ["orders"]}, 400, "not-a-trigger"),
        ("/v1/runs", {"selct": "orders"}, 400, "bad-body"),
        ("/v1/runs", {"accept_guard": []}, 400, "bad-body"),
        ("/v1/runs?wait=301", {}, 400, "bad-parameter"),
        ("/v1/runs?wait=nan", {}, 400, "bad-parameter"),
        ("/v1/runs?wiat=3", {}, 400, "bad-parameter"),
        ("/v1/runs?wait=1&wait=2", {}, 400, "bad-parameter"),
        ("/v1/backfill", {"job": " ", "stale": True}, 404, "unknown-name"),
        ("/v1/backfill", {"job": "ordres", "stale": True}, 404, "unknown-name"),
        ("/v1/backfill", {"job": "customer_totals"}, 400, "bad-body"),
        ("/v1/backfill", {"job": "customer_totals", "stale": True, "where": "a = 1"}, 400, "bad-body"),
        ("/v1/backfill", {"stale": True}, 400, "bad-body"),
        ("/v1/backfill", {"job": "", "stale": True}, 400, "bad-body"),
        ("/v1/backfill", {"job": "customer_totals", "where": ""}, 400, "bad-body"),
        ("/v1/backfill", {"job": "customer_totals", "where": " "}, 400, "filter-unknown"),
        ("/v1/backfill", {"job": "customer_totals", "partitions": [""]}, 400, "bad-body"),
        ("/v1/runs", {"select": ""}, 400, "bad-body"),
        ("/v1/runs", {"as_of": "0001-01-01T00:00:00+14:00"}, 400, "bad-instant"),
        ("/v1/invalidations", {"dataset": "orders", "partition_key": "", "reason": "x"}, 400, "bad-body"),
        ("/v1/invalidations", {"dataset": "orders", "reason": "x"}, 400, "bad-body"),
        ("/v1/invalidations", {"dataset": "orders", "row_filter": {"id": {"gte": 1}}}, 400, "bad-body"),
        (
            "/v1/invalidations",
            {"dataset": "orders", "row_filter": {"nope": {"gte": 1}}, "reason": "x"},
            400,
            "unknown-column",
        ),
        (
            "/v1/invalidations",
            {"dataset": "nothing", "row_filter": {"id": {"gte": 1}}, "reason": "x"},
            404,
            "unknown-name",
        ),
        ("/v1/verify", {"names": ["ordres"]}, 404, "unknown-name"),
        ("/v1/verify", {"names": "orders"}, 400, "bad-body"),
        ("/v1/verify", {"names": []}, 400, "bad-body"),
        ("/v1/verify", {"names": [" "]}, 404, "unknown-name"),
    ],
)
def test_a_wrong_request_is_refused_at_once_and_not_recorded(
    server: Server, path: str, body: dict[str, Any], status: int, slug: str
) -> None:
    refused(server.http.post(path, json=body), status, slug)
    assert server.work.requests == []
    assert server.audited() == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"select": 5}, "`select` is not valid: {a} string; or: {a} list."),
        ({"quiet": ["a", 5]}, "`quiet` is not valid: {a} boolean; or: {a} string."),
    ],
)
def test_a_value_that_may_be_several_things_is_refused_with_all_of_them(
    server: Server, body: dict[str, Any], problem: str
) -> None:
    answered = server.http.post("/v1/runs", json=body)

    refused(answered, 400, "bad-body")
    assert answered.json()["error"]["message"] == problem.format(a="Input should be a valid")


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        ("/v1/plan?as_of=", 400, "bad-instant"),
        ("/v1/plan?select=", 404, "unknown-name"),
        ("/v1/plan?select=%20", 404, "unknown-name"),
        ("/v1/status?name=", 404, "unknown-name"),
        ("/v1/runs?limit=5&limit=6", 400, "bad-parameter"),
    ],
)
def test_an_empty_parameter_does_not_mean_everything(
    server: Server, path: str, status: int, slug: str
) -> None:
    refused(server.http.get(path), status, slug)


def test_everything_that_is_asked_for_is_in_the_audit_log_with_who_asked(server: Server) -> None:
    server.http.post("/v1/runs")
    server.http.post("/v1/verify")
    server.http.post("/v1/backfill", json={"job": "customer_totals", "stale": True})

    assert [(verb, detail["actor"]) for verb, detail in server.audited()] == [
        ("run", "loopback"),
        ("verify", "loopback"),
        ("backfill", "loopback"),
    ]


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/v1/requests/nothing", "unknown-request"),
        ("/v1/runs/nothing", "unknown-run"),
        ("/v1/datasets/nothing", "unknown-name"),
        ("/v1/datasets/nothing/history?key=1", "unknown-name"),
        ("/v1/triggers/nothing", "unknown-trigger"),
        ("/v1/deliveries/nothing", "unknown-delivery"),
        ("/v1/deliveries?endpoint=nothing", "unknown-endpoint"),
        ("/v1/status?name=nothing", "unknown-name"),
        ("/v1/plan?select=nothing", "unknown-name"),
    ],
)
def test_a_name_that_does_not_exist_is_not_found(server: Server, path: str, slug: str) -> None:
    refused(server.http.get(path), 404, slug)


@pytest.mark.parametrize(
    ("route", "words"),
    [("/v1/plan", ("plan",)), ("/v1/status", ("status",)), ("/v1/status?name=orders", ("status", "orders"))],
)
def test_state_is_told_as_the_verbs_print_it(
    server: Server, route: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = server.get(route)
    capsys.readouterr()

    assert main([*words, "--output", "json", "--project", str(server.folder)]) == 0
    verb = printed(capsys)

    for document in (told, verb):
        document.pop("as_of", None)
    assert told.pop("project_error", None) is None
    assert not told.pop("dispatcher", {}).get("trouble")
    assert told == verb


def test_datasets_are_listed_in_parts_and_each_tells_its_columns(server: Server) -> None:
    first = server.get("/v1/datasets", limit=3)
    rest = server.get("/v1/datasets", limit=3, after=first["next"])
    one = server.get("/v1/datasets/orders")

    names = [document["dataset"] for part in (first, rest) for document in part["datasets"]]
    assert len(first["datasets"]) == 3
    assert rest["next"] is None
    assert len(names) == len(set(names)) == len(server.served.workspace.project.nodes)
    assert one["columns"] == {"id": "long", "name": "string"}
    assert one["inputs"] == ["orders_facts"]


def test_runs_are_listed_newest_first_and_in_parts(server: Server) -> None:
    catalog = server.served.workspace.catalog
    for number in range(5):
        start_run(catalog, f"run-{number}", AT.isoformat(), "run")
    finish_run(catalog, "run-4", "done")

    listed: list[str] = []
    after: dict[str, Any] = {}
    while True:
        part = server.get("/v1/runs", limit=2, **after)
        listed += [record["run"] for record in part["runs"]]
        if part["next"] is None:
            break
        after = {"after": part["next"]}
    newest, running = server.get("/v1/runs/run-4"), server.get("/v1/runs/run-3")
    moments = {newest["as_of"], server.get("/v1/runs")["runs"][0]["as_of"]}

    assert listed == [f"run-{number}" for number in (4, 3, 2, 1, 0)]
    assert (newest["status"], newest["tasks"], running["status"]) == ("done", [], "running")
    assert moments == {"2024-01-13T08:30:00.000000Z"}


def test_invalidations_have_the_columns_of_the_seed_and_who_processed_them(server: Server) -> None:
    (listed,) = server.get("/v1/invalidations")["invalidations"]

    assert (listed["id"], listed["dataset"], listed["scope"]) == ("i-1", "orders", "row_range")
    assert listed["row_filter"] == {"id": {"eq": 1}}
    assert [job["job"] for job in listed["jobs"]] == ["customer_totals"]


def test_a_run_or_a_request_that_is_unknown_is_found_by_the_id_that_an_answer_gave(server: Server) -> None:
    start_run(server.served.workspace.catalog, "run-1", AT.isoformat(), "run")
    refused(server.http.get("/v1/runs/nothing"), 404, "unknown-run")
    refused(server.http.get("/v1/requests/nothing"), 404, "unknown-request")

    run = server.get("/v1/runs")["runs"][0]["run"]
    request = server.http.post("/v1/runs").json()["request"]

    assert server.get(f"/v1/runs/{run}")["run"] == "run-1"
    assert server.get(f"/v1/requests/{request}")["request"] == request


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "ten", "1.5", "", "1_0", "\uff11"])
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/datasets", "/v1/deliveries", "/v1/invalidations"])
def test_a_list_is_never_longer_than_a_thousand(server: Server, path: str, limit: str) -> None:
    refused(server.http.get(path, params={"limit": limit}), 400, "bad-parameter")
    assert server.http.get(path, params={"limit": 1000}).status_code == 200


def test_a_place_that_is_in_no_list_is_refused_until_it_is_one_that_an_answer_gave(server: Server) -> None:
    start_run(server.served.workspace.catalog, "run-1", AT.isoformat(), "run")
    start_run(server.served.workspace.catalog, "run-2", AT.isoformat(), "run")
    for path in ("datasets", "runs", "deliveries", "invalidations", "triggers", "endpoints"):
        for place in ("nothing", "9" * 40):
            refused(server.http.get(f"/v1/{path}?after={place}"), 400, "bad-parameter")
    for path in ("datasets", "runs"):
        given = server.get(f"/v1/{path}", limit=1)["next"]
        assert server.http.get(f"/v1/{path}?after={given}").status_code == 200


def test_what_a_server_puts_off_is_told_and_it_is_not_ready_while_nothing_can_be_done(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.served.missing = ""
    pause = Pause(failures=2, until=AT, error="orders is broken", slug="work")
    state = DispatcherState(dispatching=True, doing="run", since=AT, paused={"orders": pause})
    monkeypatch.setattr(AtOnce, "state", lambda _: state)
    works = server.http.get("/readyz").status_code, server.get("/v1/status")["dispatcher"]
    trouble = replace(pause, error="a secret path is away", slug="catalog-unreachable")
    monkeypatch.setattr(AtOnce, "state", lambda _: replace(state, trouble=trouble))
    fails = server.http.get("/readyz")

    told = {
        "slug": "work",
        "error": "orders is broken",
        "failures": 2,
        "tried_again_at": "2024-01-13T08:30:00.000000Z",
    }
    assert works[0] == 200
    assert works[1]["paused"] == [{"node": "orders", **told}]
    assert (works[1]["doing"], works[1]["trouble"]) == ("run", None)
    assert (fails.status_code, fails.json()["missing"]) == (
        503,
        ["No work can be done: catalog-unreachable."],
    )
    assert server.get("/v1/status")["dispatcher"]["trouble"]["slug"] == "catalog-unreachable"


def test_history_needs_the_text_of_a_key(server: Server) -> None:
    for query in ("", "?key=%2500", "?key=%25zz"):
        refused(server.http.get(f"/v1/datasets/orders/history{query}"), 400, "bad-parameter")
    refused(server.http.get("/v1/datasets/orders/history?key=a,b"), 400, "wrong-key")


def test_a_server_is_alive_at_once_and_ready_when_nothing_is_missing(server: Server) -> None:
    early = server.http.get("/readyz")
    server.served.missing = ""
    server.served.project_error = "strandline.yaml:3: a secret mistake"
    ready = server.http.get("/readyz")

    assert server.get("/healthz") == {"schema": "strandline/health/v1", "alive": True}
    assert (early.status_code, early.json()["ready"], len(early.json()["missing"])) == (503, False, 1)
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert "secret" not in ready.text
    assert "secret mistake" in server.get("/v1/status")["project_error"]


METRICS = {
    "reprocessing_active_keys_total": "gauge",
    "snapshot_lag_seconds": "gauge",
    "epoch_mismatch_dropped": "counter",
    "scheduler_gap_days": "gauge",
    "runs": "counter",
    "tasks": "counter",
    "task_seconds": "summary",
    "rows_read": "counter",
    "rows_written": "counter",
    "behind_seconds": "gauge",
    "quarantined_rows": "gauge",
    "facts_received": "counter",
    "fact_to_publish_seconds": "histogram",
    "deliveries": "gauge",
    "delivery_attempts": "counter",
    "delivery_seconds": "histogram",
    "oldest_delivery_seconds": "gauge",
    "subscribers": "gauge",
    "subscription_messages": "counter",
    "slow_subscribers": "counter",
    "http_requests": "counter",
}
"""As prometheus-client reads them: the ending `_total` of a counter is not part of its name."""


def test_prometheus_reads_every_metric_that_is_promised(server: Server) -> None:
    measures = server.served.measures
    measures.add("runs_total", "done")
    measures.add("facts_received_total", "pushed", by=3)
    measures.time("fact_to_publish_seconds", 4.0)
    measures.time("delivery_seconds", 0.2, "ops")
    measures.time("task_seconds", 1.5, "orders")
    server.get("/v1/datasets/orders")

    answered = server.http.get("/metrics")
    families = {f.name: f for f in text_string_to_metric_families(answered.text)}

    assert answered.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert {name.removeprefix("strandline_"): f.type for name, f in families.items()} == METRICS
    requests = {
        (s.labels["route"], s.labels["code"]): s.value for s in families["strandline_http_requests"].samples
    }
    assert requests == {("/v1/datasets/{name}", "200"): 1}
    behind = {s.labels["dataset"] for s in families["strandline_behind_seconds"].samples}
    assert behind == {node.name for node in server.served.workspace.project.nodes}
    (buckets,) = (
        [
            s.value
            for s in families["strandline_fact_to_publish_seconds"].samples
            if s.name.endswith("_bucket")
        ],
    )
    assert buckets == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]


LABELS = {"timeline", "status", "node", "dataset", "source", "endpoint", "result", "route", "code", "le"}


def test_no_label_can_hold_a_key_a_row_or_a_secret(server: Server) -> None:
    for word in ("secret-key", "?key=secret-key"):
        server.http.get(f"/v1/datasets/{word}", headers=bearer("secret-key"))
    families = list(text_string_to_metric_families(server.http.get("/metrics").text))

    assert {label for f in families for s in f.samples for label in s.labels} <= LABELS
    assert "secret-key" not in server.http.get("/metrics").text


def test_every_route_names_its_role_and_only_health_checks_do_without() -> None:
    by_role = {(route.method, route.path): route.role for route in make_routes()}

    assert {path for (_, path), role in by_role.items() if role is None} == {"/healthz", "/readyz"}
    assert {role for (method, _), role in by_role.items() if method == "POST"} == {Role.OPERATE}
    assert {role for (method, _), role in by_role.items() if method == "GET"} == {Role.READ, None}
