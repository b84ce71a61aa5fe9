"""What people ask of a timeline: an earlier time, a part of it again, all of it as of an earlier time."""

from collections.abc import Callable

import pytest

from strandline.app.invalidate import invalidate
from strandline.app.planning import RunRequest
from strandline.app.workspace import open_workspace
from strandline.model.errors import CallError
from strandline.model.plan import Status
from tests.harness import TestProject, at, result_of
from tests.spark.test_timeline_remedies import FOLD, NOW, YAML, trade

pytestmark = pytest.mark.spark

BEFORE = at("2024-01-02T12:00:00Z")


def read_epochs(project: TestProject) -> set[tuple[str, int, int, int]]:
    rows = project.rows("daily", "item", "date", "worth", "epoch")
    return {(item, day.day, worth, epoch) for item, day, worth, epoch in rows}


def count(**numbers: int) -> dict[str, int]:
    """The counts of a task of a timeline."""
    return dict.fromkeys(("keys", "restated", "appended", "failed", "unplaced", "reprocessing"), 0) | numbers


def test_a_timeline_goes_back_and_is_computed_again_only_when_somebody_asks(
    make_project: Callable[[str], TestProject],
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    project.lines("fills/1.jsonl", trade("1", "a", "01", 2, 1), trade("2", "b", "02", 3, 1))
    project.lines("rates/1.jsonl", *({"what": item, "on": "2024-01-01", "rate": 10} for item in ("a", "b")))
    first = result_of(project.run(NOW), "daily")
    assert first.counts == count(keys=2, appended=2)
    built = read_epochs(project)
    assert built == {("a", 1, 20, 0), ("a", 2, 20, 0), ("a", 3, 20, 0), ("b", 2, 30, 0), ("b", 3, 30, 0)}

    earlier = project.run(BEFORE)
    assert earlier.results == ()
    assert [note for note in earlier.plan.notes if "daily is valued up to 2024-01-03" in note]
    assert project.plan(NOW).notes == ()

    again = project.run(
        RunRequest(backfill="stock", where="item = 'a' and date >= '2024-01-02'", as_of=NOW.as_of)
    )
    assert [result_of(again, name).status for name in ("history", "daily")] == [Status.UNCHANGED] * 2
    with pytest.raises(CallError, match="`amount`"):
        project.run(RunRequest(backfill="stock", where="amount > 1", as_of=NOW.as_of))
    with open_workspace(project.folder) as workspace:
        invalidate(workspace, "rate", where="item = 'b'", reason="checked")
    checked = result_of(project.run(NOW), "daily")
    assert (checked.status, checked.counts["keys"]) == (Status.UNCHANGED, 1)
    assert read_epochs(project) == built

    back = project.run(RunRequest(backfill="stock", as_of=BEFORE.as_of, reason="as it was"))
    assert result_of(back, "daily").counts == count(keys=2, restated=2)
    assert read_epochs(project) == {row for row in built if row[1] < 3}
    assert project.rows("stock_epochs", "item", "worth", "superseded_by") == {("a", 20, 1), ("b", 30, 1)}
    assert project.plan(BEFORE).notes == ()
    assert result_of(project.run(NOW), "daily").counts == count(keys=2, appended=2)
    assert read_epochs(project) == {(*row[:3], int(row[1] == 3)) for row in built}
    project.assert_verified("history", "daily")


def test_a_changed_fold_waits_for_a_backfill_which_restates_only_what_differs(
    make_project: Callable[[str], TestProject],
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    project.lines("fills/1.jsonl", trade("1", "a", "01", 2, 1), trade("2", "b", "02", 3, 1))
    project.lines("rates/1.jsonl", *({"what": item, "on": "2024-01-01", "rate": 10} for item in ("a", "b")))
    project.run(NOW)
    built = read_epochs(project)

    project.write("folds.py", FOLD.replace('{"amount": amount}', '{"amount": min(amount, 2)}'))
    project.lines("fills/2.jsonl", trade("3", "b", "03", 4, 1))
    held = project.run(NOW)
    assert "`strandline backfill history --all`" in held.plan.frozen[0].reason
    assert read_epochs(project) == built

    project.run(RunRequest(backfill="history", as_of=NOW.as_of))
    assert read_epochs(project) == {row for row in built if row[0] == "a"} | {
        ("b", 2, 20, 1),
        ("b", 3, 20, 1),
    }
    project.assert_verified("history", "daily")
