"""The deliveries of a server: sent by a thread of its own, and never silently not sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from starlette.testclient import TestClient

from strandline.app import deliveries as app_deliveries
from strandline.app.run import RunOutcome
from strandline.catalog import enqueue_deliveries
from strandline.declare import load_project
from strandline.model.deliveries import NewDelivery
from strandline.model.plan import Cause, Plan, Status, Strategy, Task, conclude
from strandline.model.project import Snapshot
from strandline.model.scope import NOTHING
from strandline.serve import counting, deliveries
from strandline.serve.deliveries import Deliverer
from strandline.serve.logs import configure_logs
from strandline.serve.routes import make_routes
from strandline.serve.served import Served
from tests.receiver import SECRET, Receiver, receiving_in_thread
from tests.unit.serve.builders import serving
from tests.unit.serve.served_world import wait_until

SECRETS = {"OPS_SECRET": SECRET, "DESK_SECRET": SECRET}
PROJECT = """\
project: told
sources: {{events: {{files: "data/*.jsonl"}}}}
datasets:
  trades:
    from: events
    columns: {{id: id, quantity: {{path: quantity, type: bigint}}, at: {{path: at, type: bigint}}}}
    record_set: {{key: [id], order_by: [at]}}
endpoints:
  ops: {{url: "{ops}", secret: "${{OPS_SECRET}}", allow: [127.0.0.0/8], retry: [1 s, 1 s]}}
  desk: {{url: "{desk}", secret: "${{DESK_SECRET}}", allow: [127.0.0.0/8]}}
triggers:
  large: {{from: trades, fire: {{quantity: {{_gte: 10}}}}, endpoint: [ops, desk]}}
"""


def owe(served: Served, event_id: str, *endpoints: str) -> None:
    owed = [
        NewDelivery(
            event_id=event_id,
            event_type="MATCH",
            trigger="large",
            endpoint=endpoint,
            key=event_id,
            source_timestamp=1,
            body=b"{}",
        )
        for endpoint in endpoints
    ]
    enqueue_deliveries(served.workspace.catalog, "large", None, ("table", 0), owed)


@contextmanager
def delivering(
    folder: Path, ops: str, desk: str, *owed: str, environ: dict[str, str] = SECRETS, hosts: str = ""
) -> Iterator[tuple[TestClient, Served, Deliverer]]:
    (folder / "strandline.yaml").write_text(PROJECT.format(ops=ops, desk=desk) + hosts)
    with serving(folder, routes=make_routes()) as (http, served):
        deliverer = Deliverer(environ=environ)
        deliverer.on_sent.append(lambda sent: counting.count_sent(served.measures, sent))
        served.address = "127.0.0.1:8321"
        owe(served, "e1", *owed)
        deliverer.start(served)
        try:
            yield http, served, deliverer
        finally:
            deliverer.stop(10)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving_in_thread() as receiver:
        yield receiver


def find_error(http: TestClient, endpoint: str) -> dict[str, str] | None:
    listed = http.get("/v1/endpoints").json()["endpoints"]
    found: dict[str, str] | None = next(one["error"] for one in listed if one["endpoint"] == endpoint)
    return found


def test_what_is_owed_is_sent_when_it_is_woken_and_each_attempt_is_timed(
    tmp_path: Path, receiver: Receiver
) -> None:
    with delivering(tmp_path, receiver.url, receiver.url, "ops", "desk") as (http, _, _deliverer):
        wait_until(lambda: len(receiver.received) == 2, "two webhooks")
        wait_until(lambda: http.get("/v1/deliveries").json()["counts"] == {"delivered": 2}, "their records")
        metrics = http.get("/metrics").text

    assert 'strandline_delivery_seconds_count{endpoint="ops"} 1' in metrics
    assert 'strandline_delivery_attempts_total{endpoint="desk",result="delivered"} 1' in metrics
    assert find_error(http, "ops") is None


@pytest.mark.parametrize("step", ["fill", "find_due", "send_to"])
def test_a_step_that_raises_whatever_it_is_ends_neither_the_thread_nor_what_can_be_sent(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    really, failures = (
        getattr(app_deliveries, step),
        [OSError(24, "Too many open files"), ValueError("a broken row")],
    )

    def fail_at_first(*parts: object) -> object:
        if failures:
            raise failures.pop()
        return really(*parts)

    monkeypatch.setattr(app_deliveries, step, fail_at_first)
    monkeypatch.setattr(deliveries, "_REST", timedelta(seconds=0.1))

    with delivering(tmp_path, receiver.url, receiver.url, "ops", "desk"):
        wait_until(lambda: len(receiver.received) == 2, "two webhooks")
        wait_until(lambda: not failures, "both failures")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://127.0.0.1:8321/v1/facts/events", ""),
        ("http://localhost:8321/v1/facts/events", ""),
        ("http://127.1:8321/", ""),
        ("http://[::ffff:127.0.0.1]:8321/", ""),
        ("https://pipe.example/v1/facts/events", "settings: {serve: {hosts: [pipe.example]}}\n"),
    ],
)
def test_an_endpoint_that_is_the_server_itself_is_told_and_the_others_are_served(
    url: str, hosts: str, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_REST", timedelta(seconds=0.1))
    with delivering(tmp_path, receiver.url, url, "ops", "desk", hosts=hosts) as (http, served, _deliverer):
        wait_until(lambda: find_error(http, "desk") is not None, "the refusal")
        wait_until(lambda: len(receiver.received) == 1, "the other webhook")
        error, tested = find_error(http, "desk"), http.post("/v1/endpoints/desk/test")
        waiting = http.get("/v1/deliveries", params={"endpoint": "desk"}).json()["counts"]

        (tmp_path / "strandline.yaml").write_text(PROJECT.format(ops=receiver.url, desk=receiver.url))
        served.workspace = replace(served.workspace, project=load_project(tmp_path, {}))
        wait_until(lambda: len(receiver.received) == 2, "what had waited, at the receiver's address")

    assert error is not None
    assert error["slug"] == tested.json()["error"]["slug"] == "endpoint-is-server"
    assert waiting == {"pending": 1}, "nothing is lost"


def test_another_port_of_this_machine_is_another_server(tmp_path: Path, receiver: Receiver) -> None:
    with delivering(tmp_path, receiver.url, receiver.url.replace("127.0.0.1", "localhost"), "desk"):
        wait_until(lambda: len(receiver.received) == 1, "the webhook")


def test_an_endpoint_whose_secret_is_not_set_is_told_by_its_status_and_the_log(
    tmp_path: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    configure_logs(sys.stderr)
    try:
        with delivering(
            tmp_path, receiver.url, receiver.url, "ops", "desk", environ={"OPS_SECRET": SECRET}
        ) as (http, _, _deliverer):
            wait_until(lambda: len(receiver.received) == 1, "the other webhook")
            wait_until(lambda: find_error(http, "desk") is not None, "the reason")
            error = find_error(http, "desk")
    finally:
        structlog.reset_defaults()

    assert error is not None
    assert error["slug"] == "secret-not-set"
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(one["endpoint"], one["slug"]) for one in said if one["event"] == "nothing can be sent"] == [
        ("desk", "secret-not-set")
    ]


def test_the_log_of_a_task_has_its_run_its_token_and_how_many_keys_got_another_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    task = Task(
        node="positions",
        kind=Snapshot.kind,
        cause=Cause.NEW_INPUT,
        strategy=Strategy.RECOMPUTE,
        reason="",
        scope=NOTHING,
    )
    result = replace(conclude(task, Status.DONE), token=7, table_version=3, counts={"keys": 4, "restated": 2})
    outcome = RunOutcome(run="r-1", plan=Plan(as_of=datetime.now(UTC), tasks=()), results=(result,))
    configure_logs(sys.stderr)
    try:
        with delivering(tmp_path, "http://127.0.0.1:1/", "http://127.0.0.1:1/") as (_, served, _deliverer):
            counting.count_run(served.measures, outcome)
            counting.log_timelines(served.workspace, outcome)
    finally:
        structlog.reset_defaults()

    (said,) = (
        one for line in capsys.readouterr().err.splitlines() if (one := json.loads(line))["event"] == "task"
    )
    assert (said["run"], said["node"], said["token"], said["table_version"], said["new_epochs"]) == (
        "r-1",
        "positions",
        7,
        3,
        2,
    )
