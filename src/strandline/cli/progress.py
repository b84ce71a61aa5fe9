"""Progress of a run, on stderr: a bar on a terminal, a line per task elsewhere."""

import sys
from typing import TYPE_CHECKING

from strandline.model.plan import Plan, Status, Task, TaskResult
from strandline.pages.wording import plural

from .output import say
from .quiet import SparkOutput

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """Shows the events of a run.

    It is opened before Spark starts and closed when the run has ended in any way.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._total = self._done = 0
        self._running: list[str] = []
        self._spark = SparkOutput()
        self._bar: Bar | None = None
        self._bar_task: TaskID | None = None

    def waiting(self, holder: str) -> None:
        if not self._silent:
            say(f"Waiting for the lake, which is being written by {holder} ...")

    def planned(self, plan: Plan) -> None:
        self._total = len(plan.tasks)
        if not plan.tasks:
            return
        if not self._silent:
            say("Starting Spark ...")
        self._spark.open()

    def started(self, task: Task) -> None:
        self._spark.close()
        self._running.append(task.node)
        if sys.stderr.isatty() and not self._silent:
            self._draw()

    def ended(self, result: TaskResult) -> None:
        self._spark.close()
        self._done += 1
        if result.node in self._running:
            self._running.remove(result.node)
        if self._bar is not None:
            self._draw()
        elif not self._silent:
            say(progress_line(self._done, self._total, result))

    def close(self) -> None:
        self._spark.close()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar_task = self._bar.add_task("", total=self._total)
            self._bar.start()
        assert self._bar_task is not None
        self._bar.update(self._bar_task, completed=self._done, description=", ".join(self._running))


def progress_line(done: int, total: int, result: TaskResult) -> str:
    """`  3/31 done  demand  44 rows in 1.2 s`."""
    place = f"{done:>{len(str(total))}}/{total}"
    figures = (
        f"  {plural(result.rows_written, 'row')} in {result.seconds:.1f} s"
        if result.status is Status.DONE
        else ""
    )
    return f"  {place} {result.status}  {result.node}{figures}"
