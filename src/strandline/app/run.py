"""`run`, `backfill` and `quarantine --release`: do what the plan says, in its order."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from strandline.catalog import audit, finish_run, start_run
from strandline.dispatch.desk import Desk, Pins, Workers
from strandline.dispatch.outbox import Filled, fill_outbox
from strandline.dispatch.run import execute
from strandline.lake.lock import await_lake, hold_lake
from strandline.lake.refused import count_added_by_slug
from strandline.model.errors import CallError, OutsideError
from strandline.model.hashing import digest
from strandline.model.plan import Plan, Status, TaskResult
from strandline.model.project import FailOn
from strandline.model.report import suggest
from strandline.model.statuses import NOTHING_HELD, HeldWork
from strandline.plan import Observed, select_nodes
from strandline.plan.held_work import find_held
from strandline.plan.selection import upstream

from .clock import now
from .planning import RunRequest, make_plan
from .staging import staged
from .watching import Watcher
from .workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    run: str
    plan: Plan
    results: tuple[TaskResult, ...]
    held: HeldWork = NOTHING_HELD
    """What waits for a backfill now that the run has ended."""
    fail_on: FailOn = FailOn.NOTHING
    quarantined: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By fact dataset and reason (slug): the number of rows that this run put in quarantine."""
    outbox: Filled = field(default_factory=Filled)
    """What became of the events that are recorded."""

    @property
    def exit_code(self) -> int:
        good = (Status.DONE, Status.UNCHANGED)
        if self.outbox.failures or not all(r.status in good for r in self.results):
            return 1
        return 1 if self.fail_on is FailOn.HELD and self.held.waits else 0


def run(workspace: Workspace, request: RunRequest, watcher: Watcher) -> RunOutcome:
    """Plan, then do exactly that. If there is nothing to do, Spark is not started."""
    quiet = _find_quiet(workspace, request)
    plan, observed = make_plan(workspace, request)
    if plan.tasks and await_lake(workspace.lake, watcher.waiting):
        plan, observed = make_plan(workspace, request)
    _refuse_impossible(workspace, plan, request)
    _refuse_lost_source(workspace, plan, observed)
    fail_on = request.fail_on or workspace.project.settings.fail_on
    watcher.planned(plan)
    started_at = now()
    name = run_name(started_at)
    # Before anything is recorded: a cursor that was lost is found again, one that is new is opened.
    outbox = fill_outbox(workspace.project, workspace.catalog, workspace.lake, now)
    if not plan.tasks:
        return RunOutcome(
            run=name,
            plan=plan,
            results=(),
            held=find_held(workspace.project, observed, plan),
            fail_on=fail_on,
            outbox=outbox,
        )
    session = open_lake(workspace, started_at)
    desk = replace(make_desk(workspace, observed, plan, name, session, request), quiet=quiet)
    start_run(
        workspace.catalog,
        name,
        plan.as_of.isoformat(),
        "person" if request.backfill or request.release else "run",
    )
    if request.backfill or request.release:
        audit(
            workspace.catalog,
            "backfill" if request.backfill else "release",
            {"name": request.backfill or request.release, "reason": request.reason},
        )
    results: tuple[TaskResult, ...] = ()
    try:
        with staged(workspace, name):
            results = execute(desk, plan, watcher.started, watcher.ended, watcher.stopping)
    finally:
        ok = bool(results) and all(r.status in (Status.DONE, Status.UNCHANGED) for r in results)
        finish_run(workspace.catalog, name, "done" if ok else "failed")
    after = fill_outbox(workspace.project, workspace.catalog, workspace.lake, now)
    # Plan again: what the run wrote may wait for something, and a changed lookup makes its readers stale.
    left, observed_after = make_plan(
        workspace, RunRequest(as_of=plan.as_of, goes_back=request.as_of is not None)
    )
    return RunOutcome(
        run=name,
        plan=plan,
        results=results,
        held=find_held(workspace.project, observed_after, left),
        fail_on=fail_on,
        quarantined=_count_quarantined(workspace, results),
        outbox=replace(after, owed=outbox.owed + after.owed, notes=(*outbox.notes, *after.notes)),
    )


def check_request(workspace: Workspace, request: RunRequest) -> tuple[Plan, HeldWork]:
    """The plan of a request as it is now. Raises what `run` would raise about the request itself."""
    _find_quiet(workspace, request)
    _accepted(workspace, request)
    plan, observed = make_plan(workspace, request)
    _refuse_impossible(workspace, plan, request)
    return plan, find_held(workspace.project, observed, plan)


def _count_quarantined(workspace: Workspace, results: tuple[TaskResult, ...]) -> dict[str, dict[str, int]]:
    """For each fact dataset whose quarantine this run wrote: the number of rows by reason."""
    counts = {}
    for result in results:
        if (
            workspace.project.get(result.node).traits.holds_refused
            and result.table_version is not None
            and result.rows_written
        ):
            by_reason = count_added_by_slug(workspace.lake.table(result.node), result.table_version)
            counts[result.node.removesuffix("_quarantine")] = by_reason
    return counts


def run_name(at: datetime) -> str:
    """A run's id: its start and a digest of its process. Ids sort by time and differ between processes."""
    process = digest([socket.gethostname(), os.getpid(), at.isoformat()])
    return f"{at:%Y%m%dT%H%M%S}.{at.microsecond:06}-{process[:6]}"


def make_desk(
    workspace: Workspace,
    observed: Observed,
    plan: Plan,
    name: str,
    session: Callable[[], "SparkSession"],
    request: RunRequest,
) -> Desk:
    from strandline.lake.small import SmallTables
    from strandline.lake.work import Shared

    rows = {n: r.row_count for n, r in observed.view.nodes.items()}
    return Desk(
        project=workspace.project,
        catalog=workspace.catalog,
        lake=workspace.lake,
        run=name,
        holder=f"{socket.gethostname()}:{os.getpid()}/{name}",
        as_of=plan.as_of,
        now=now,
        session=session,
        workers=load_workers,
        pins=Pins.observed(observed.tables, rows),
        shared=Shared(
            small=SmallTables(
                lake=workspace.lake,
                folder=f"{workspace.lake.staging(name)}/small",
                thresholds=workspace.project.settings.thresholds,
            )
        ),
        scratch=workspace.lake.staging(name),
        accept_guard=_accepted(workspace, request),
        batches=request.batches,
    )


def _find_quiet(workspace: Workspace, request: RunRequest) -> frozenset[str]:
    """The triggers whose events are recorded without telling anybody."""
    triggers = {n.name for n in workspace.project.nodes if n.traits.told_to is not None}
    if request.quiet is None or not request.quiet:
        return frozenset() if request.quiet is None else frozenset(triggers)
    for name in request.quiet:
        if name not in triggers:
            raise CallError(
                f"`{name}` is not a trigger, so it tells nobody anyway.",
                remedy=suggest(name, sorted(triggers), "triggers"),
                slug="not-a-trigger",
            )
    return frozenset(request.quiet)


def _accepted(workspace: Workspace, request: RunRequest) -> frozenset[str]:
    if request.accept_guard is None:
        return frozenset()
    if not request.accept_guard:
        return frozenset(n.name for n in workspace.project.nodes)
    return select_nodes(workspace.project, " ".join(request.accept_guard))


def open_lake(workspace: Workspace, at: datetime) -> Callable[[], "SparkSession"]:
    """Start Spark and take the lake for this process. Another holder is detected before Spark is started."""
    from strandline.spark.session import get_session

    await_lake(workspace.lake)
    session = get_session(workspace.project.settings)
    hold_lake(session, workspace.lake, at.isoformat(timespec="seconds"))
    return lambda: session


def load_workers() -> Workers:
    """The workers that use Spark."""
    from strandline.dispatch import workers

    return workers


def no_session() -> "SparkSession":
    """For a desk at which nothing is written to the lake."""
    raise AssertionError("nothing is written to the lake")


def _refuse_impossible(workspace: Workspace, plan: Plan, request: RunRequest) -> None:
    if request.backfill is None:
        return
    backfilled = select_nodes(workspace.project, request.backfill)
    held = [h for h in plan.held if h.node in backfilled]
    if held and not plan.tasks:
        raise CallError(
            f"`{held[0].node}` cannot be computed yet: {held[0].reason}.",
            remedy="Settle its input first; it is brought up to date in the same run.",
            slug="held",
        )
    if not (request.only_stale or request.partitions or request.where):
        return
    frozen = [h for h in plan.frozen if h.node in backfilled]
    if frozen:
        raise CallError(
            f"`{frozen[0].node}` is frozen: {frozen[0].reason}.",
            remedy=f"Use `strandline backfill {request.backfill} --all`.",
            slug="frozen",
        )


def _refuse_lost_source(workspace: Workspace, plan: Plan, observed: Observed) -> None:
    """L1: refuse to rebuild readers of a source whose table lost rows, because its files count as received.

    Whatever does not depend on it goes on.
    """
    read = upstream(workspace.project, (task.node for task in plan.tasks))
    for node in workspace.project.nodes:
        table, record = observed.tables.get(node.name), observed.view.nodes.get(node.name)
        if node.inputs or node.name not in read or table is None or record is None or not record.table_id:
            continue
        other = record.table_id != table.table_id
        if other or table.version < record.table_version or table.rows < record.row_count:
            what = (
                "is not the table that was written"
                if other
                else f"has {table.rows} rows, and {record.row_count} were received"
            )
            raise OutsideError(
                f"The table of `{node.name}` {what}: someone deleted, restored or recreated it.",
                remedy=f"Restore the old one, or move `{workspace.lake.table(node.name)}` away and run: "
                "every file that still exists is received again.",
                slug="source-lost",
            )
