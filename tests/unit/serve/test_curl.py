"""`curl` alone does everything that the HTTP API offers: each route, over a real socket, with a key."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strandline.app.workspace import open_workspace
from strandline.catalog import enqueue_deliveries, finish_run, start_run
from strandline.model.deliveries import NewDelivery
from strandline.serve.served import Served
from tests.published_log import PublishedLog, trade
from tests.receiver import SECRET, receiving_in_thread
from tests.unit.cli.builders import make_shop, order
from tests.unit.cli.lake_builder import write_lake
from tests.unit.serve.builders import OPERATE, AtOnce
from tests.unit.serve.test_routes import AT, OUTCOMES
from tests.unit.serve.test_security import LANGUAGE, Listening

KEYS = f"settings:\n  serve:\n    keys: {{ci: {{role: operate, key: {OPERATE}}}}}\n"
TOLD = """
endpoints:
  ops: {url: "URL", secret: "${OPS_SECRET}", allow: ["127.0.0.0/8"]}
triggers:
  large_order: {from: orders, fire: {amount: {_gte: "100"}}, endpoint: ops}
"""
JSON, LINES = ("--json",), ("--header", "Content-Type: application/x-ndjson", "--data-binary")
POST = ("--request", "POST")
OF_THE_LAKE = {
    "POST /v1/facts/{source}": (202, (*LINES, '{"n": 1}\n{"n": 2}\n'), "/v1/facts/pushed"),
    "POST /v1/runs": (200, (*JSON, '{"select": "+orders"}'), "/v1/runs?wait=5"),
    "POST /v1/backfill": (202, (*JSON, '{"job": "customer_totals", "partitions": "all"}'), "/v1/backfill"),
    "POST /v1/invalidations": (
        202,
        (*JSON, '{"dataset": "orders", "row_filter": {"id": {"eq": 1}}, "reason": "wrong"}'),
        "/v1/invalidations",
    ),
    "POST /v1/verify": (202, (*JSON, '{"names": ["orders"]}'), "/v1/verify"),
    "GET /v1/requests/{request}": (200, (), "/v1/requests/request-0"),
    "GET /v1/runs": (200, (), "/v1/runs?limit=5"),
    "GET /v1/runs/{run}": (200, (), "/v1/runs/run-1"),
    "GET /v1/plan": (200, (), "/v1/plan?select=orders"),
    "GET /v1/status": (200, (), "/v1/status?name=orders"),
    "GET /v1/invalidations": (200, (), "/v1/invalidations"),
    "GET /v1/datasets": (200, (), "/v1/datasets"),
    "GET /v1/datasets/{name}": (200, (), "/v1/datasets/orders"),
    "GET /v1/datasets/{name}/rows": (200, (), "/v1/datasets/orders/rows?limit=1"),
    "GET /v1/triggers": (200, (), "/v1/triggers"),
    "GET /v1/triggers/{name}": (200, (), "/v1/triggers/large_order"),
    "GET /v1/endpoints": (200, (), "/v1/endpoints"),
    "GET /v1/deliveries": (200, (), "/v1/deliveries?status=pending&endpoint=ops"),
    "GET /v1/deliveries/{id}": (200, (), "/v1/deliveries/e-1-ops"),
    "POST /v1/deliveries/{id}/replay": (409, POST, "/v1/deliveries/e-1-ops/replay"),
    "POST /v1/deliveries/replay": (200, (*JSON, '{"status": "dead"}'), "/v1/deliveries/replay"),
    "POST /v1/endpoints/{name}/disable": (200, (*JSON, '{"reason": "x"}'), "/v1/endpoints/ops/disable"),
    "POST /v1/endpoints/{name}/enable": (200, POST, "/v1/endpoints/ops/enable"),
    "POST /v1/endpoints/{name}/test": (200, POST, "/v1/endpoints/ops/test"),
    "GET /metrics": (200, (), "/metrics"),
    "GET /healthz": (200, (), "/healthz"),
    "GET /readyz": (503, (), "/readyz"),
}
OF_A_SHOP = {"GET /v1/datasets/{name}/history": (200, (), "/v1/datasets/orders/history?key=A-1")}
OF_A_LOG = {
    "GET /v1/datasets/{name}/changes": (200, (), "/v1/datasets/trades/changes?limit=1&wait=1"),
    "POST /graphql": (200, (*JSON, '{"query": "{ trades { trade_id } }"}'), "/graphql"),
}
"""By route: what it answers, and what `curl` is given."""
ALL = OF_THE_LAKE | OF_A_SHOP | OF_A_LOG


def curl(server: Listening, *words: str, seconds: float = 20, key: str = OPERATE) -> tuple[int, str]:
    command = ["curl", "--silent", "--max-time", str(seconds), "--write-out", "\n%{http_code}"]
    given = ["--header", f"Authorization: Bearer {key}", *words[:-1]]
    url = f"http://127.0.0.1:{server.port}{words[-1]}"
    done = subprocess.run([*command, *given, url], capture_output=True, text=True)
    body, _, code = done.stdout.rpartition("\n")
    return int(code), body


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    """Every thing that a route can name exists."""
    monkeypatch.setenv("OPS_SECRET", SECRET)
    file = write_lake(tmp_path).folder / "strandline.yaml"
    with receiving_in_thread() as receiver:
        text = file.read_text().replace("sources:\n", "sources:\n  pushed: {http: {}}\n", 1)
        file.write_text(text + TOLD.replace("URL", receiver.url) + KEYS)
        with open_workspace(file.parent) as workspace:
            owed = NewDelivery(
                event_id="e-1",
                event_type="MATCH",
                trigger="large_order",
                endpoint="ops",
                key="o-1",
                source_timestamp=1,
                body=b"{}",
            )
            enqueue_deliveries(workspace.catalog, "large_order", None, ("table", 0), [owed])
            start_run(workspace.catalog, "run-1", AT.isoformat(), "new_input")
            finish_run(workspace.catalog, "run-1", "done")
            outcomes = {"run": OUTCOMES["run"]}  # the other work stays pending
            with Listening(Served(workspace=workspace, work=AtOnce(workspace, outcomes))) as server:
                yield server


@contextmanager
def listening(folder: Path) -> Iterator[Listening]:
    file = folder / "strandline.yaml"
    file.write_text(file.read_text() + KEYS)
    with (
        open_workspace(folder, {}) as workspace,
        Listening(Served(workspace=workspace, work=AtOnce(workspace, {}))) as server,
    ):
        yield server


def call_all(server: Listening, routes: Mapping[str, tuple[int, tuple[str, ...], str]]) -> dict[str, Any]:
    return {name: curl(server, *words, path) for name, (_, words, path) in routes.items()}


def test_curl_calls_every_route(lake: Listening, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")
    shop.write("orders_facts", [order("A-1", "120.00", 9, 1)])
    log = PublishedLog.create(tmp_path / "log")
    log.commit({1: trade(1)})

    answers = call_all(lake, OF_THE_LAKE)
    with listening(shop.folder) as server:
        answers |= call_all(server, OF_A_SHOP)
    with listening(log.folder) as server:
        answers |= call_all(server, OF_A_LOG)
        stream = ("--header", "Accept: text/event-stream", "/v1/datasets/trades/changes")
        _, streamed = curl(server, *stream, seconds=1)

    expected = {name: code for name, (code, *_) in ALL.items()}
    assert {name: code for name, (code, _) in answers.items()} == expected
    assert expected.keys() == {f"{method} {path}" for method, path in LANGUAGE}
    for name in expected.keys() - {"GET /metrics", "POST /graphql"}:
        assert json.loads(answers[name][1])["schema"].startswith("strandline/")
    assert json.loads(answers["POST /v1/facts/{source}"][1])["received"] == 2
    assert json.loads(answers["POST /graphql"][1]) == {"data": {"trades": [{"trade_id": "1"}]}}
    assert streamed.startswith("id: ")


def test_curl_without_a_key_reaches_health_checks_alone(lake: Listening) -> None:
    codes = {name: curl(lake, *words, path, key="")[0] for name, (_, words, path) in ALL.items()}

    assert {name for name, code in codes.items() if code != 401} == {"GET /healthz", "GET /readyz"}
