"""How plans and runs are printed, and a run with nothing to do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.app.run import RunOutcome
from strandline.cli import plan as plan_verb
from strandline.cli import run as run_verb
from strandline.cli.progress import Progress, progress_line
from strandline.model.plan import (
    Cause,
    Cursor,
    Held,
    Plan,
    PlannedInput,
    Status,
    Strategy,
    Task,
    TaskResult,
)
from strandline.model.project import FailOn, Snapshot
from strandline.model.scope import Increment, Keys
from strandline.model.statuses import NOTHING_HELD, HeldNode, HeldState, HeldWork
from strandline.pages.documents.plan import plan_document
from strandline.pages.documents.run import run_document
from tests.unit.cli.builders import at, make_shop, no_spark, printed

TASK = Task(
    node="demand",
    kind=Snapshot.kind,
    cause=Cause.NEW_INPUT,
    strategy=Strategy.RECOMPUTE,
    reason="changed rows in version 3 of `demand_facts`, about 44 rows",
    scope=Keys(origins=(Increment(dataset="demand_facts", first=3, last=3, rows=44),)),
    inputs=(
        PlannedInput(
            name="demand_facts", dataset="demand_facts", after=Cursor(table_id="t", version=2), changes=True
        ),
    ),
    estimated_rows=44,
    estimated_bytes=1500,
    full_rows=2585,
    full_bytes=90_000,
)
STALE = HeldNode(
    node="defaulters",
    state=HeldState.STALE,
    reason="`sql` changed",
    changed=("sql",),
    partitions=(),
    written_at=at(8),
    waiting_rows=70,
    waiting_since=None,
    backfill_rows=1200,
)
FROZEN = replace(
    STALE, node="demand", state=HeldState.FROZEN, reason="`key` changed", waiting_rows=5, waiting_since=at(9)
)
HELD = HeldWork(nodes=(FROZEN, STALE), command="strandline backfill demand defaulters --all")


def result(**changes: Any) -> TaskResult:
    fields: dict[str, Any] = {
        "node": "demand",
        "kind": Snapshot.kind,
        "cause": Cause.NEW_INPUT,
        "strategy": Strategy.RECOMPUTE,
        "reason": "changed rows",
        "scope": TASK.scope,
        "covered": Keys(count=43),
        "status": Status.DONE,
        "input_versions": {"demand_facts": 3},
        "rows_read": 44,
        "rows_written": 43,
        "rows_full": 2629,
        "seconds": 1.234,
        "table_version": 3,
        "counts": {},
    }
    return TaskResult(**{**fields, **changes})


def test_a_plan_in_json_has_the_fields_of_the_language() -> None:
    stale = Held(node="defaulters", reason="`sql` changed", changed=("sql",), backfill_rows=1200)

    document = plan_document(Plan(as_of=at(9), tasks=(TASK,), stale=(stale,)), HELD)

    assert document == {
        "as_of": at(9),
        "tasks": [
            {
                "node": "demand",
                "kind": "snapshot",
                "cause": "new_input",
                "strategy": "recompute",
                "reason": TASK.reason,
                "scope": "the keys in version 3 of `demand_facts`, about 44 rows",
                "input_versions": {"demand_facts": 2},
                "estimated_rows": 44,
                "estimated_bytes": 1500,
                "full_rows": 2585,
                "full_bytes": 90_000,
            }
        ],
        "stale": [
            {"node": "defaulters", "reason": "`sql` changed", "changed": ["sql"], "backfill_rows": 1200}
        ],
        "frozen": [],
        "held": [
            {
                "node": "demand",
                "state": "frozen",
                "reason": "`key` changed",
                "written_at": at(8),
                "waiting_rows": 5,
                "waiting_since": at(9),
                "backfill_rows": 1200,
            },
            {
                "node": "defaulters",
                "state": "stale",
                "reason": "`sql` changed",
                "written_at": at(8),
                "waiting_rows": 70,
                "waiting_since": None,
                "backfill_rows": 1200,
            },
        ],
        "settle": "strandline backfill demand defaulters --all",
    }


def test_a_plan_for_people_tells_what_it_reads_against_a_full_recompute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")

    lines = plan_verb.render_plan(Plan(as_of=at(9), tasks=(TASK,)), NOTHING_HELD).splitlines()

    assert lines[2].split() == [
        "demand",
        "new_input",
        "recompute",
        "44",
        "2,585",
        "1.7",
        "%",
        *TASK.reason.split(),
    ]
    assert (
        lines[-1] == "1 task would read about 44 rows (1.5 kB); a full recompute of the same 2,585 (90.0 kB)."
    )


def test_a_plan_without_tasks_is_not_called_up_to_date_while_something_is_held() -> None:
    free = plan_verb.render_plan(Plan(as_of=at(9), tasks=()), NOTHING_HELD)
    held = plan_verb.render_plan(Plan(as_of=at(9), tasks=()), HELD)

    assert free == "Everything is up to date."
    assert held.splitlines() == [
        "Nothing to do now.",
        "",
        "WARNING: not everything follows the current configuration.",
        "  Frozen: nothing is written, the last published state stays.",
        "    demand: `key` changed; last written 2024-01-12 08:00:00; "
        "5 new rows wait for it since 2024-01-12 09:00:00; "
        "a backfill reads about 1,200 rows",
        "  Stale: new work uses the new configuration, older rows do not.",
        "    defaulters: `sql` changed; last written 2024-01-12 08:00:00; "
        "at most 70 rows of an older configuration; "
        "a backfill reads about 1,200 rows",
        "  This settles all of it: strandline backfill demand defaulters --all",
    ]


@pytest.mark.parametrize(
    ("fail_on", "waiting", "code"),
    [(FailOn.NOTHING, 5, 0), (FailOn.HELD, 5, 1), (FailOn.HELD, 0, 0)],
    ids=["usual", "held", "idle"],
)
def test_a_run_ends_with_1_when_it_is_to_fail_on_what_is_held_and_something_waits(
    fail_on: FailOn, waiting: int, code: int
) -> None:
    held = HeldWork(
        nodes=(replace(FROZEN, waiting_rows=waiting),), command="strandline backfill demand --all"
    )
    outcome = RunOutcome(run="r", plan=Plan(as_of=at(9), tasks=()), results=(), held=held, fail_on=fail_on)

    assert outcome.exit_code == code
    assert (
        run_verb.render_outcome(outcome, 1.0).splitlines()[-1]
        == "  This settles all of it: strandline backfill demand --all"
    )


def test_a_run_tells_what_it_put_in_quarantine_by_reason() -> None:
    quarantined = {"demand": {"null-key": 1200, "misfit": 3}}
    outcome = RunOutcome(
        run="r", plan=Plan(as_of=at(9), tasks=(TASK,)), results=(result(),), quarantined=quarantined
    )

    text = run_verb.render_outcome(outcome, 1.0)

    assert (
        "demand: 1,203 rows put in quarantine (1,200 null-key, 3 misfit); see `strandline quarantine demand`."
        in text
    )
    assert run_document(outcome)["quarantined"] == quarantined


def test_a_run_in_json_has_the_fields_of_the_language() -> None:
    outcome = RunOutcome(run="r", plan=Plan(as_of=at(9), tasks=(TASK,)), results=(result(),))

    document = run_document(outcome)

    assert list(document) == ["run", "as_of", "tasks", "quarantined", "held", "settle"]
    assert document["tasks"] == [
        {
            "node": "demand",
            "kind": "snapshot",
            "cause": "new_input",
            "strategy": "recompute",
            "reason": "changed rows",
            "scope": "the keys in version 3 of `demand_facts`, about 44 rows: 43 keys",
            "status": "done",
            "input_versions": {"demand_facts": 3},
            "rows_read": 44,
            "rows_written": 43,
            "rows_full": 2629,
            "seconds": 1.234,
            "table_version": 3,
            "counts": {},
        }
    ]


def test_a_failed_task_is_told_in_full_below_the_table_and_its_notes_too() -> None:
    failed = result(node="a", status=Status.FAILED, error="It broke.\n  Mend it.  [broke]", slug="broke")
    blocked = result(node="b", status=Status.BLOCKED, error="waits for `a`", slug="blocked")
    noted = result(node="c", notes=("skipped x.jsonl",))
    outcome = RunOutcome(run="r", plan=Plan(as_of=at(9), tasks=()), results=(failed, blocked, noted))

    text = run_verb.render_outcome(outcome, 2.0)

    assert "a failed:\n  It broke.\n    Mend it.  [broke]" in text
    assert "waits for `a`" in text
    assert "c: skipped x.jsonl" in text
    assert "3 tasks in 2.0 s: 1 done, 1 failed, 1 blocked." in text
    assert outcome.exit_code == 1


def test_progress_is_a_line_per_task_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.planned(Plan(as_of=at(9), tasks=(TASK,)))

    progress.started(TASK)
    progress.ended(result())
    progress.close()

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1] == "  1/1 done  demand  43 rows in 1.2 s"


def test_a_progress_line_keeps_its_columns() -> None:
    assert progress_line(3, 31, result(status=Status.UNCHANGED)) == "   3/31 unchanged  demand"


def test_a_run_with_nothing_to_do_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    with no_spark(monkeypatch):
        code = shop.call("run", "--select", "customer_totals")
        output = capsys.readouterr().out
        code_json = shop.call("run", "--select", "customer_totals", "--output", "json")

    assert (code, output) == (0, "Everything is up to date.\n")
    assert code_json == 0
    assert printed(capsys)["tasks"] == []


def test_a_plan_of_a_new_project_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    with no_spark(monkeypatch):
        code = shop.call("plan", "--as-of", "2024-01-13", "--output", "json")

    plan = printed(capsys)
    assert code == 0
    assert plan["as_of"] == "2024-01-13T00:00:00.000000Z"
    assert [t["node"] for t in plan["tasks"]] == [
        "order_events",
        "orders_facts",
        "orders_quarantine",
        "orders",
        "customer_totals",
    ]


def test_csv_lists_the_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = make_shop(tmp_path).call("plan", "--output", "csv", "--select", "order_events")

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].startswith("node,kind,cause,strategy,reason,scope,input_versions,estimated_rows")
    assert lines[1].startswith("order_events,source,new_node,append,")


def test_selecting_nothing_by_mistake_is_a_wrong_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_shop(tmp_path).call("plan", "--select", "ordres") == 2
    assert "`orders`" in capsys.readouterr().err
