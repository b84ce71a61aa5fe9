"""Reading ahead: what later tasks of a run will need is read while earlier ones work."""

import threading
from collections.abc import Sequence
from contextlib import suppress

from strandline.model.plan import Task

from .desk import Desk


class ReadingAhead:
    """Reads, in the order of the plan, what tasks that wait for others will need.

    Meanwhile a core is often idle. Whatever goes wrong here is left to the task, which reads the same and
    reports it.
    """

    def __init__(self, desk: Desk, tasks: Sequence[Task]) -> None:
        self._desk = desk
        self._waiting = [task for task in tasks if task.needs]
        self._written = frozenset(task.node for task in tasks)
        self._begun: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="ahead")

    def __enter__(self) -> "ReadingAhead":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        if kind is None:  # an interrupted run does not wait
            self._thread.join()

    def begin(self, task: Task) -> None:
        """A task reads for itself from now on."""
        self._begun.add(task.node)

    def _read(self) -> None:
        for task in self._waiting:
            if self._stop.is_set():
                return
            if task.node not in self._begun:
                with suppress(Exception):
                    self._desk.workers().read_ahead(self._desk, task, self._written)
