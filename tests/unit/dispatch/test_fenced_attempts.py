"""A write that a newer writer overtook is recorded, although the task is tried again."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.catalog import count_fenced, read_tasks
from strandline.dispatch import run
from strandline.dispatch.desk import Desk
from strandline.model.errors import ConflictError, FencedError
from strandline.model.plan import Plan, Status, Task, TaskResult, conclude
from tests.golden.cases import AS_OF
from tests.unit.dispatch.test_strict_incremental import make_desk, plan_turnover, tables

__all__ = ["tables"]


def play(
    errors: list[Exception], tmp_path: Path, cursors: dict[str, object], patch: pytest.MonkeyPatch
) -> tuple[Desk, TaskResult]:
    """Run one task whose first attempts end with these errors."""
    left = list(errors)

    def attempt(_desk: Desk, task: Task) -> TaskResult:
        if left:
            raise left.pop(0)
        return conclude(task, Status.DONE)

    patch.setattr(run, "attempt", attempt)
    task = replace(plan_turnover(cursors, price_read_up_to=1), refuses=())  # type: ignore[arg-type]
    desk = make_desk(tmp_path, cursors)  # type: ignore[arg-type]
    (result,) = run.execute(desk, Plan(as_of=AS_OF, tasks=(task,)), lambda _: None, lambda _: None)
    return desk, result


def test_each_dropped_write_is_an_attempt_of_its_own(
    tmp_path: Path, tables: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [
        FencedError("a newer writer", remedy="none"),
        ConflictError("a race", remedy=""),
    ]

    desk, result = play(errors, tmp_path, tables, monkeypatch)

    assert result.status is Status.DONE
    assert [t.status for t in read_tasks(desk.catalog, "r")] == [Status.FENCED, Status.DONE]
    assert count_fenced(desk.catalog, ["turnover"]) == 1
    assert count_fenced(desk.catalog, ["sale"]) == 0


def test_the_last_one_is_the_result(
    tmp_path: Path, tables: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [FencedError("a newer writer", remedy="none")] * run.TRIES

    desk, result = play(errors, tmp_path, tables, monkeypatch)

    assert result.status is Status.FENCED
    assert count_fenced(desk.catalog, ["turnover"]) == run.TRIES
