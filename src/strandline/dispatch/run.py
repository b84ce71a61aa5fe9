"""One pass of the dispatcher: the plan's tasks, inputs before readers, independent ones in parallel."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace

from strandline.catalog import record_task, renew_leases
from strandline.model.errors import (
    ConflictError,
    FencedError,
    GuardedError,
    OutsideError,
    StrandlineError,
    WorkError,
)
from strandline.model.plan import Plan, Status, Strategy, Task, TaskResult, add_batch, conclude
from strandline.model.scope import Keys, Left

from .ahead import ReadingAhead
from .attempt import attempt, has_changed
from .desk import Desk
from .failpoints import reach
from .holding import holding
from .outside import as_known

TRIES = 3
_LOOK_UP = 0.5
"""Seconds between two looks at whether the run is to stop."""
GRACE = 2.0
"""Seconds that the tasks of an interrupted run have to end cleanly."""
_BAD = (Status.FAILED, Status.BLOCKED, Status.GUARDED, Status.FENCED)


def execute(
    desk: Desk,
    plan: Plan,
    started: Callable[[Task], None],
    ended: Callable[[TaskResult], None],
    stopping: Callable[[], bool] = lambda: False,
) -> tuple[TaskResult, ...]:
    """Run a plan to its end. A task that fails blocks its readers alone.

    Once `stopping` is true the run ends as by Ctrl-C: with a KeyboardInterrupt.
    """
    results: dict[str, TaskResult] = {}
    waiting = {t.node: t for t in plan.tasks}
    running: dict[Future[TaskResult], Task] = {}
    pool = ThreadPoolExecutor(max_workers=desk.project.settings.workers, thread_name_prefix="task")
    interrupted = False
    with Heartbeat(desk), ReadingAhead(desk, plan.tasks) as ahead:
        try:
            while waiting or running:
                for task in [t for t in waiting.values() if all(n in results for n in t.needs)]:
                    del waiting[task.node]
                    bad = [n for n in task.needs if results[n].status in _BAD and not results[n].partly]
                    if bad:
                        _finish(desk, results, _blocked(task, bad), ended)
                    else:
                        started(task)
                        ahead.begin(task)
                        running[pool.submit(_do, desk, task)] = task
                if not running:
                    continue
                done, _ = wait(running, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
                if stopping():
                    raise KeyboardInterrupt
                for future in done:
                    running.pop(future)
                    _finish(desk, results, future.result(), ended)
            _purge(desk, results, pool)
        except KeyboardInterrupt:
            interrupted = True
            _abandon(desk, pool, running)
            raise
        finally:
            pool.shutdown(wait=not interrupted)
    return tuple(results[t.node] for t in plan.tasks)


def _abandon(desk: Desk, pool: ThreadPoolExecutor, running: Mapping[Future[TaskResult], Task]) -> None:
    """Cancel Spark's jobs and wait a moment for the tasks to give their leases back.

    The next run fences and settles what is left.
    """
    pool.shutdown(wait=False, cancel_futures=True)
    left, until = set(running), time.monotonic() + GRACE
    while left and time.monotonic() < until:
        with suppress(
            Exception
        ):  # Spark may be gone; a task that goes on with its next job is cancelled in the next round
            desk.session().sparkContext.cancelAllJobs()
        left = wait(left, timeout=0.2).not_done


def _finish(
    desk: Desk, results: dict[str, TaskResult], result: TaskResult, ended: Callable[[TaskResult], None]
) -> None:
    results[result.node] = result
    record_task(desk.catalog, desk.run, result)
    ended(result)


def _do(desk: Desk, task: Task) -> TaskResult:
    """A task, and the batches that it leaves, as many as the run may do."""
    result = _try(desk, task)
    while result.left and (desk.batches is None or result.batches < desk.batches):
        batch = _try(desk, _next_batch(task, result))
        result = add_batch(result, batch)
        if batch.error and not batch.partly:
            break
    return result


def _next_batch(task: Task, result: TaskResult) -> Task:
    """The task that goes on with what is left. No input has moved since."""
    origins = tuple(Left(left=left) for left in result.left)
    return replace(
        task,
        strategy=Strategy.RECOMPUTE,
        scope=Keys(origins=origins),
        inputs=tuple(replace(i, changes=False) for i in task.inputs),
        overwrite=False,
    )


def _try(desk: Desk, task: Task) -> TaskResult:
    """Attempts until one is not raced; every other error is the task's result."""
    started = time.monotonic()
    for nth in range(TRIES):
        try:
            _refuse_widening(desk, task)
            return attempt(desk, task)
        except GuardedError as error:
            return _failed(task, Status.GUARDED, error, started)
        except ConflictError as error:
            fenced = isinstance(error, FencedError)
            result = _failed(task, Status.FENCED if fenced else Status.FAILED, error, started)
            if nth == TRIES - 1:
                return result
            if fenced:  # a dropped write is never silent (L13), although it is tried again
                record_task(desk.catalog, desk.run, result)
        except Exception as error:  # noqa: BLE001 - whatever a worker raises is the task's result; the rest of the plan goes on
            return _failed(task, Status.FAILED, error, started)
    raise AssertionError("unreachable")


def _refuse_widening(desk: Desk, task: Task) -> None:
    """`strict_incremental`: once an input that is read whole is known to have changed, that is an error."""
    for planned in task.inputs:
        if planned.dataset in task.refuses and has_changed(
            desk, planned.dataset, planned.after, desk.pins.get(planned.dataset)
        ):
            raise WorkError(
                f"`{planned.name}` has changed and `{task.node}` reads it whole, "
                "so everything would be recomputed; "
                "its `strict_incremental: true` refuses that.",
                remedy=f"Run `strandline backfill {task.node} --all` to recompute it once, "
                f"declare how `{planned.name}` relates to the key, "
                "or take `strict_incremental` away.",
                slug="strict-incremental",
            )


def _failed(task: Task, status: Status, error: Exception, started: float) -> TaskResult:
    known = error if isinstance(error, StrandlineError) else as_known(error)
    return replace(
        conclude(task, status),
        error=str(known),
        slug=known.slug,
        seconds=round(time.monotonic() - started, 3),
    )


def _blocked(task: Task, bad: list[str]) -> TaskResult:
    return replace(
        conclude(task, Status.BLOCKED), error=f"waits for {', '.join(f'`{n}`' for n in bad)}", slug="blocked"
    )


def _purge(desk: Desk, results: dict[str, TaskResult], pool: ThreadPoolExecutor) -> None:
    """Remove the `_deleted` rows that this run wrote, except those of snapshots.

    Readers do not see these rows, so a purge that fails is only noted.
    """
    left = [
        r.node for r in results.values() if r.tombstones and not desk.project.get(r.node).traits.keeps_deleted
    ]
    for name, future in {name: pool.submit(_purge_one, desk, name) for name in left}.items():
        try:
            future.result()
        except Exception as error:  # noqa: BLE001 whatever it was: what is published is right, and the next purge takes these rows too
            reason = str(error).partition("\n")[0] or type(error).__name__
            note = f"its deleted rows are hidden and wait to be purged: {reason}"
            results[name] = replace(results[name], notes=(*results[name].notes, note))
            record_task(desk.catalog, desk.run, results[name])


def _purge_one(desk: Desk, name: str) -> None:
    node, commit_purge = desk.project.get(name), desk.workers().commit_purge
    with holding(desk, node) as held:
        reach("before-purge", name)
        written = held.write(lambda: commit_purge(desk, node, held.lease))
        reach("after-purge", name)
        held.record(written, held.rows)


class Heartbeat:
    """Renews this run's leases while it works."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="leases")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        seconds = self._desk.project.settings.lease_seconds
        while not self._stop.wait(seconds / 3):
            # A catalog that is out of reach for a moment must not end the beat. If it stays so, tasks fail.
            with suppress(OutsideError):
                renew_leases(self._desk.catalog, self._desk.holder, seconds)
