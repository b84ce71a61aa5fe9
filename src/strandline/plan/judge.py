"""The state of each dataset, from a plan and what it was made from."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from strandline.model.catalog_records import NodeRecord
from strandline.model.node import Node, Project
from strandline.model.plan import Plan, Status, Task
from strandline.model.statuses import (
    BEHIND,
    BUILDING,
    FRESH,
    FROZEN,
    NEVER_BUILT,
    STALE,
    DatasetStatus,
    HeldNode,
    HeldWork,
)

from .draft import pending
from .held_work import describe_change, find_held, find_holders
from .partition_states import describe_partitioning, judge_partitions
from .request import Observed
from .sources import is_pending

_L10 = ("offered", "accepted", "duplicates", "quarantined", "passed_over", "derived")
_ILL = (Status.FAILED, Status.GUARDED, Status.BLOCKED, Status.FENCED)


def judge(
    project: Project, plan: Plan, observed: Observed, names: frozenset[str] | None
) -> tuple[tuple[DatasetStatus, ...], HeldWork]:
    """The status of the named nodes (None: all), inputs before readers.

    The second value is what is held among them or upstream of them.
    """
    held = find_held(project, observed, plan, names)
    holders_by_node, held_by_node = find_holders(project, plan), {h.node: h for h in held.nodes}
    since: dict[str, datetime | None] = {}
    statuses = []
    for node in project.nodes:
        status = _judge(project, node, plan, observed, since)
        if (holders := holders_by_node.get(node.name)) and status.state in (FRESH, BEHIND):
            status = _wait_for(status, holders, plan, held_by_node)
        if waits := plan.waiting.get(node.name):
            status = replace(status, reason="; ".join(part for part in (status.reason, waits) if part))
        since[node.name] = status.since if status.state == BEHIND else None
        if names is None or node.name in names:
            statuses.append(status)
    return tuple(statuses), held


def _wait_for(
    status: DatasetStatus, holders: tuple[str, ...], plan: Plan, held_by_node: Mapping[str, HeldNode]
) -> DatasetStatus:
    """What reads something held is not fresh: it lacks the rows that a backfill of that would bring."""
    frozen = {h.node for h in plan.frozen}
    words = " and ".join(f"`{name}`, which is {FROZEN if name in frozen else STALE}" for name in holders)
    reason = "; ".join(part for part in (status.reason, f"waits for {words}") if part)
    if status.state == BEHIND:
        return replace(status, reason=reason, held_by=holders)
    times = [
        held_by_node[name].waiting_since or held_by_node[name].written_at
        for name in holders
        if name in held_by_node
    ]
    since = min((t for t in times if t), default=status.since)
    return replace(status, state=BEHIND, since=since, reason=reason, held_by=holders)


def _judge(
    project: Project, node: Node, plan: Plan, observed: Observed, behind_since: Mapping[str, datetime | None]
) -> DatasetStatus:
    record, table = observed.view.nodes.get(node.name), observed.tables.get(node.name)
    task = next((t for t in plan.tasks if t.node == node.name), None)
    frozen = next((h for h in plan.frozen if h.node == node.name), None)
    stale = next((h for h in plan.stale if h.node == node.name), None)
    at, reason = (record.updated_at if record else None), ""
    if frozen is not None:
        state, reason = FROZEN, describe_change(frozen)
    elif record is not None and task is not None and record.last_status in _ILL:
        state, at, reason = record.last_status, record.status_since, record.last_error
    elif (
        record is None
        or (table is None and not record.cursors and not node.traits.receives)
        or (task is not None and table is None and not node.traits.may_lack_table)
    ):
        state, at = NEVER_BUILT, None
    elif task is not None and record.building:
        state, reason = BUILDING, task.reason
    elif task is not None:
        state, at, reason = BEHIND, _behind_since(node, task, record, observed, behind_since), task.reason
    elif stale is not None:
        state, reason = STALE, f"{describe_change(stale)} since rows were written"
    else:
        state = FRESH
    partitioning = node.traits.partitioning
    return DatasetStatus(
        dataset=node.name,
        kind=node.kind,
        drawn_under=node.traits.drawn_under,
        drawn_from=node.traits.drawn_from,
        state=state,
        since=at,
        table_version=table.version if table else None,
        rows=record.row_count if record else 0,
        counts=_counts(node, record),
        reason=reason,
        inputs=tuple(dict.fromkeys(i.dataset for i in node.inputs)),
        partitioned_by=describe_partitioning(partitioning) if partitioning else "",
        partitions=judge_partitions(project, node, plan, observed),
    )


def _behind_since(
    node: Node,
    task: Task,
    record: NodeRecord,
    observed: Observed,
    behind_since: Mapping[str, datetime | None],
) -> datetime | None:
    """When the oldest unread change came: of a file, of an input, or of an input that is behind itself."""
    if node.traits.receives:
        listed = [f for f in observed.listings.get(node.name, ()) if is_pending(f, record.files.get(f.path))]
        return min((datetime.fromtimestamp(f.modified_ns / 1e9, UTC) for f in listed), default=None)
    times = []
    for input_ in task.inputs:
        table = observed.tables.get(input_.dataset)
        if table is not None and input_.after is not None and input_.changes:
            unread = pending(node, table, input_.after)
            times += [
                c.committed_at
                for c in table.commits_after(input_.after.version)
                if c.version in unread and c.committed_at is not None
            ]
        if (upstream := behind_since.get(input_.dataset)) is not None:
            times.append(upstream)
    return min(times, default=record.updated_at)


def _counts(node: Node, record: NodeRecord | None) -> Mapping[str, int]:
    if record is None:
        return {}
    unfinished = (
        {"unfinished": sum(f.unfinished for f in record.files.values())} if node.traits.receives else {}
    )
    outcomes = {name: record.counts[name] for name in _L10 if name in record.counts}
    return {**outcomes, **record.counts, **unfinished}
