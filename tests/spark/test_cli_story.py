"""The command line with Spark behind it: stdout is data and nothing else, and the verbs fit together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.app.init import init
from strandline.cli import main
from tests.harness import TestProject

pytestmark = pytest.mark.spark

LATE = (
    '{"orderId": "A-1", "customer": "Asha", "amount": 90.00, "status": "PLACED", '
    '"changedAt": "2024-01-13T09:00:00Z"}\n'
)
BROKEN = '{"customer": "Asha", "amount": 1, "status": "PLACED", "changedAt": "2024-01-13T10:00:00Z"}\n'

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> TestProject:
    """A new project after its first run. Never changed; tests work on copies."""
    folder = tmp_path_factory.mktemp("first run") / "shop"
    init(folder)
    project = TestProject(folder)
    project.run()
    return project


@pytest.fixture
def built(first_run: TestProject, tmp_path: Path) -> TestProject:
    return first_run.copy(tmp_path / "shop")


@pytest.fixture
def ask(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Calls a verb on a new project, or on the one that was built. Its stdout must be one JSON document.

    That includes the file descriptor, which the JVM inherits.
    """
    if not (tmp_path / "shop").exists():
        main(["init", str(tmp_path / "shop")])
    capfd.readouterr()

    def call(*words: str, code: int = 0) -> Any:
        ended = main([*words, "--project", str(tmp_path / "shop"), "--output", "json"])
        output = capfd.readouterr()
        assert ended == code, output.err
        return json.loads(output.out)

    return call


def test_a_project_lives_through_the_verbs(ask: Ask, tmp_path: Path) -> None:
    totals = "SELECT customer, orders, amount FROM customer_totals ORDER BY customer"

    first = ask("run")
    again = ask("run")

    assert {t["status"] for t in first["tasks"]} <= {"done", "unchanged"}
    assert again["tasks"] == []
    assert ask("query", totals)["rows"] == [
        ["Asha", 1, "100.00"],
        ["Bilal", 1, "80.00"],
        ["Chen", 1, "12.25"],
    ]
    assert {d["state"] for d in ask("status")["datasets"]} == {"fresh"}

    (tmp_path / "shop" / "data" / "orders" / "2024-01-13.jsonl").write_text(LATE + BROKEN)

    assert {d["dataset"]: d["state"] for d in ask("status")["datasets"]}["customer_totals"] == "behind"
    assert ask("query", "SELECT amount FROM orders WHERE order_id = 'A-1'", "--fresh")["rows"] == [["90.00"]]
    assert ask("query", "SELECT amount FROM orders WHERE order_id = 'A-1'", "--engine", "spark")["rows"] == [
        ["100.00"]
    ]

    planned = [(t["node"], t["cause"], t["strategy"]) for t in ask("plan")["tasks"]]
    second = ask("run")

    assert [(t["node"], t["cause"], t["strategy"]) for t in second["tasks"]] == planned  # L14
    assert ask("query", totals)["rows"][0] == ["Asha", 1, "90.00"]
    assert ask("query", totals, "--known-at", "customer_totals=0")["rows"][0] == ["Asha", 1, "100.00"]
    assert [r["slug"] for r in ask("quarantine", "orders")["rows"]] == ["null-key"]
    history = ask("history", "orders", "A-1")["facts"]
    assert [(f["row"]["amount"], f["won"]) for f in history] == [
        ("120.00", False),
        ("100.00", False),
        ("90.00", True),
    ]
    assert {d["result"] for d in ask("verify")["datasets"]} <= {"equal", "empty"}
    assert {
        t["status"] for t in ask("backfill", "customer_totals", "--all", "--reason", "to see")["tasks"]
    } <= {"done", "unchanged"}
    assert all(f["result"] != "wrong" for f in ask("doctor")["findings"])


def test_a_failed_source_ends_with_1_and_the_rest_is_told(built: TestProject, ask: Ask) -> None:
    file = built.folder / "data" / "orders" / "2024-01-12.jsonl"
    file.write_text(file.read_text().replace("120.00", "121.00"))

    failed = ask("run", code=1)

    states = {t["node"]: t["status"] for t in failed["tasks"]}
    assert states["order_events"] == "failed"
    assert states["orders"] == "blocked"
    assert next(t["slug"] for t in failed["tasks"] if t["node"] == "order_events")
    assert {d["dataset"]: d["state"] for d in ask("status")["datasets"]}["order_events"] == "failed"


def test_held_work_is_loud_and_the_one_call_that_is_named_settles_it(built: TestProject, ask: Ask) -> None:
    folder = built.folder
    project = folder / "strandline.yaml"
    assert ask("run", "--fail-on", "held")["held"] == []
    project.write_text(project.read_text().replace("key: [order_id]", "key: [order_id, customer]"))
    (folder / "data" / "orders" / "2024-01-13.jsonl").write_text(LATE + BROKEN + BROKEN)

    received = ask("run")
    waiting = {h["node"]: h["waiting_rows"] for h in received["held"] if h["state"] == "frozen"}
    again = ask("run", "--fail-on", "held", code=1)
    status = ask("status")

    assert received["quarantined"] == {"orders": {"null-key": 2}}
    assert waiting["orders_facts"] == 3, "two of them will be refused"
    assert again["tasks"] == []
    states = {d["dataset"]: d["state"] for d in status["datasets"]}
    assert (states["orders_facts"], states["orders"]) == ("frozen", "frozen")
    assert "fresh" not in (states["orders"], states["customer_totals"])
    assert status["settle"] == again["settle"] == "strandline backfill orders --all"

    settled = ask(*status["settle"].split()[1:])

    assert {t["status"] for t in settled["tasks"]} <= {"done", "unchanged"}
    assert (settled["held"], settled["settle"]) == ([], None)
    assert ask("run", "--fail-on", "held")["held"] == []
    assert {d["state"] for d in ask("status")["datasets"]} == {"fresh"}
    assert ask("query", "SELECT amount FROM orders WHERE order_id = 'A-1'")["rows"] == [["90.00"]]
    assert {d["result"] for d in ask("verify")["datasets"]} <= {"equal", "empty"}
