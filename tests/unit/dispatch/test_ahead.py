"""What later tasks will need is read while earlier ones work, and never in place of them."""

import threading
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from strandline.dispatch.ahead import ReadingAhead
from strandline.dispatch.desk import Desk
from strandline.model.plan import Cause, Strategy, Task
from strandline.model.project import Job
from strandline.model.scope import EVERYTHING


def make_task(node: str, *needs: str) -> Task:
    return Task(
        node=node,
        kind=Job.kind,
        cause=Cause.NEW_INPUT,
        strategy=Strategy.RECOMPUTE,
        reason="",
        scope=EVERYTHING,
        needs=needs,
    )


@dataclass
class Reader:
    """Stands for desk and workers: notes what is read, and waits where it is told to."""

    read: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    raises: bool = False

    def workers(self) -> "Reader":
        return self

    def read_ahead(self, _: object, task: Task, written: frozenset[str]) -> None:
        assert written == {"a", "b", "c"}
        self.gate.wait(10)
        self.read.append(task.node)
        if self.raises:
            raise RuntimeError("the table cannot be read")


TASKS = (make_task("a"), make_task("b", "a"), make_task("c", "b"))


def test_tasks_that_wait_are_read_for_in_the_order_of_the_plan() -> None:
    reader = Reader()
    reader.gate.set()

    with ReadingAhead(cast(Desk, reader), TASKS) as ahead:
        ahead._thread.join(10)

    assert reader.read == ["b", "c"]


def test_a_task_that_has_begun_is_not_read_for() -> None:
    reader = Reader()

    with ReadingAhead(cast(Desk, reader), TASKS) as ahead:
        ahead.begin(TASKS[2])
        reader.gate.set()
        ahead._thread.join(10)

    assert reader.read == ["b"]


def test_what_fails_is_left_to_its_task() -> None:
    reader = Reader(raises=True)
    reader.gate.set()

    with ReadingAhead(cast(Desk, reader), TASKS) as ahead:
        ahead._thread.join(10)

    assert reader.read == ["b", "c"]


def test_a_run_that_ends_reads_nothing_more() -> None:
    reader: Any = Reader()
    ahead = ReadingAhead(cast(Desk, reader), TASKS)

    with ahead:
        ahead._stop.set()
        reader.gate.set()

    assert not ahead._thread.is_alive()
    assert len(reader.read) <= 1


def test_an_interrupted_run_does_not_wait_for_what_is_being_read() -> None:
    reader = Reader()
    ahead = ReadingAhead(cast(Desk, reader), TASKS)

    with pytest.raises(KeyboardInterrupt), ahead:
        raise KeyboardInterrupt

    assert ahead._thread.is_alive()
    reader.gate.set()
    ahead._thread.join(10)
