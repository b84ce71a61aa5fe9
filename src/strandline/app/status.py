"""`status`: what is fresh, behind, stale, frozen or failed, and since when. Starts no Spark."""

from dataclasses import replace
from datetime import datetime

from strandline.catalog import read_invalidations
from strandline.model.invalidations import from_columns
from strandline.model.scope import Partitions, Scope
from strandline.model.scope_text import describe
from strandline.model.statuses import DatasetStatus, HeldWork, InvalidationStatus, Overview
from strandline.plan.judge import judge
from strandline.plan.selection import get_nodes

from .clock import now
from .planning import RunRequest, make_plan
from .timelines import read_keys, read_timelines
from .workspace import Workspace


def read_overview(workspace: Workspace, name: str | None = None, *, with_dates: bool = False) -> Overview:
    """The status of every node, or of those a name means, with their invalidations and timelines.

    The invalidations are the ones that the nodes carry or have to process. `with_dates` adds the state of
    the keys of timelines on each business date.
    """
    made_at = now()
    statuses, held = read_status(workspace, name)
    statuses = tuple(
        replace(s, keys=read_keys(workspace.lake, workspace.project.get(s.dataset))) for s in statuses
    )
    shown = {s.dataset for s in statuses}
    owed = [i for i in read_pending(workspace) if i.dataset in shown or shown & i.processed_at_by_job.keys()]
    return Overview(
        project=workspace.project.name,
        statuses=statuses,
        held=held,
        invalidations=tuple(owed),
        made_at=made_at,
        timelines=read_timelines(workspace, shown, made_at, with_dates=with_dates),
    )


def read_pending(workspace: Workspace) -> tuple[InvalidationStatus, ...]:
    """The invalidations that some job has still to process, oldest first."""
    invalidations, owed = read_invalidations(
        workspace.catalog, [n.name for n in workspace.project.nodes if n.traits.answers_invalidations]
    )
    jobs: dict[str, dict[str, datetime | None]] = {}
    for row in owed:
        jobs.setdefault(row["invalidation_id"], {})[row["job"]] = row["processed_at"]
    return tuple(
        InvalidationStatus(
            id=row["id"],
            dataset=row["dataset"],
            scope=_describe_scope(from_columns(row["partition_key"], row["row_filter"])),
            reason=row["reason"],
            created_at=row["created_at"],
            table_version=row["table_version"],
            processed_at_by_job=jobs[row["id"]],
        )
        for row in invalidations
        if row["processed_at"] is None
    )


def _describe_scope(scope: Scope) -> str:
    return f"partition {describe(scope)}" if isinstance(scope, Partitions) else describe(scope)


def read_status(workspace: Workspace, name: str | None = None) -> tuple[tuple[DatasetStatus, ...], HeldWork]:
    """Every node, or those a name means, inputs before readers, and what is held among them or upstream."""
    project = workspace.project
    names = None if name is None else frozenset(get_nodes(project, name))
    plan, observed = make_plan(workspace, RunRequest())
    return judge(project, plan, observed, names)
