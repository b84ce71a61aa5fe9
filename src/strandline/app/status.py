"""`status`: what is fresh, behind, stale, frozen or failed, and since when. Starts no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.model.node import Node, NodeKind
from strandline.model.plan import Plan, Status, Task
from strandline.model.records import NodeRecord
from strandline.plan import Observed
from strandline.plan.selection import get_nodes
from strandline.plan.sources import is_pending

from .planning import RunRequest, make_plan
from .workspace import Workspace

FRESH, BEHIND, STALE, FROZEN, NEVER_BUILT = "fresh", "behind", "stale", "frozen", "never built"
_L10 = ("offered", "accepted", "duplicates", "quarantined", "passed_over", "derived")
_ILL = (Status.FAILED, Status.GUARDED, Status.BLOCKED, Status.FENCED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatus:
    dataset: str
    kind: NodeKind
    state: str
    """fresh, behind, stale, frozen, never built; or, of what was tried last and is still to do: failed, guarded, blocked, fenced."""
    since: datetime | None
    table_version: int | None
    rows: int
    counts: Mapping[str, int]
    reason: str = ""
    """Why it is not fresh."""


def read_status(workspace: Workspace, name: str | None = None) -> tuple[DatasetStatus, ...]:
    """Every node, or those a name means, inputs before readers."""
    wanted = frozenset(get_nodes(workspace.project, name)) if name else None
    plan, observed = make_plan(workspace, RunRequest())
    since: dict[str, datetime | None] = {}
    found = []
    for node in workspace.project.nodes:
        status = _judge(node, plan, observed, since)
        since[node.name] = status.since if status.state == BEHIND else None
        if wanted is None or node.name in wanted:
            found.append(status)
    return tuple(found)


def _judge(node: Node, plan: Plan, observed: Observed, behind_since: Mapping[str, datetime | None]) -> DatasetStatus:
    record, table = observed.view.nodes.get(node.name), observed.tables.get(node.name)
    task = next((t for t in plan.tasks if t.node == node.name), None)
    frozen = next((h for h in plan.frozen if h.node == node.name), None)
    stale = next((h for h in plan.stale if h.node == node.name), None)
    at, reason = (record.updated_at if record else None), ""
    if frozen is not None:
        state, reason = FROZEN, frozen.reason
    elif record is not None and task is not None and record.last_status in _ILL:
        state, at, reason = record.last_status, record.status_since, record.last_error
    elif (
        record is None
        or (table is None and not record.cursors and node.kind is not NodeKind.SOURCE)
        or (task is not None and table is None and node.kind is not NodeKind.QUARANTINE)
    ):
        state, at = NEVER_BUILT, None
    elif task is not None:
        state, at, reason = BEHIND, _behind_since(node, task, record, observed, behind_since), task.reason
    elif stale is not None:
        state, reason = STALE, stale.reason
    else:
        state = FRESH
    return DatasetStatus(
        dataset=node.name,
        kind=node.kind,
        state=state,
        since=at,
        table_version=table.version if table else None,
        rows=record.row_count if record else 0,
        counts=_counts(node, record),
        reason=reason,
    )


def _behind_since(
    node: Node, task: Task, record: NodeRecord, observed: Observed, behind_since: Mapping[str, datetime | None]
) -> datetime | None:
    """When the oldest of what it has not read came: a file was changed, an input was committed, or an input is behind itself."""
    if node.kind is NodeKind.SOURCE:
        listed = [f for f in observed.listings.get(node.name, ()) if is_pending(f, record.files.get(f.path))]
        return min((datetime.fromtimestamp(f.modified_ns / 1e9, UTC) for f in listed), default=None)
    times = []
    for given in task.inputs:
        table = observed.tables.get(given.dataset)
        if table is not None and given.after is not None and given.changes:
            times += [c.committed_at for c in table.commits_after(given.after.version) if c.changes_rows and c.committed_at is not None]
        if (upstream := behind_since.get(given.dataset)) is not None:
            times.append(upstream)
    return min(times, default=record.updated_at)


def _counts(node: Node, record: NodeRecord | None) -> Mapping[str, int]:
    if record is None:
        return {}
    unfinished = {"unfinished": sum(f.unfinished for f in record.files.values())} if node.kind is NodeKind.SOURCE else {}
    told = {name: record.counts[name] for name in _L10 if name in record.counts}
    return {**told, **record.counts, **unfinished}
