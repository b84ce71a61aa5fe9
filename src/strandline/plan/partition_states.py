"""The state of each partition of a job's output: fresh, behind, invalidated, stale, building or waiting."""

from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import CommitSummary, Operation
from strandline.model.condition_checks import check_filter
from strandline.model.conditions import EVERY_ROW, AllOf
from strandline.model.errors import CallError
from strandline.model.node import By, Node, Project
from strandline.model.partitions import Span, find_span
from strandline.model.plan import Plan, PlannedInput, Strategy
from strandline.model.project import Partitioning
from strandline.model.scope import find_filter
from strandline.model.statuses import (
    BEHIND,
    BUILDING,
    FRESH,
    INVALIDATED,
    NEVER_BUILT,
    STALE,
    PartitionStatus,
)

from .partition_reach import may_hold, may_share
from .request import Observed
from .staleness import current_config


def describe_partitioning(partitioning: Partitioning) -> str:
    """`block_number, 500 each`; `block_at, by day, for each chain_id`."""
    own = f"by {partitioning.unit}" if partitioning.unit else f"{partitioning.size:,} each"
    groups = f", for each {' and '.join(partitioning.by)}" if partitioning.by else ""
    return f"{partitioning.column}, {own}{groups}"


def judge_partitions(
    project: Project, node: Node, plan: Plan, observed: Observed
) -> tuple[PartitionStatus, ...]:
    """Every partition that was built or waits to be, in order. Empty for a node without partitions."""
    partitioning, record = node.traits.partitioning, observed.view.nodes.get(node.name)
    if partitioning is None or record is None:
        return ()
    built = record.partitions if node.name in observed.tables else {}
    span_by_key = {
        key: find_span(partitioning, project.calendar, key) for key in (*record.partitions, *record.waiting)
    }
    stale = {key for held in plan.stale if held.node == node.name for key in held.partitions}
    config = current_config(node, observed)
    pending = _find_pending(project, node, record, plan, observed)
    statuses = []
    for key in sorted(span_by_key, key=lambda key: _place(key, span_by_key[key])):
        version = built.get(key)
        if version is None:
            statuses.append(PartitionStatus(partition_key=key, state=NEVER_BUILT))
            continue
        state = (
            STALE if key in stale or version.config_hash != config.hash else pending.judge(span_by_key[key])
        )
        if record.building and state in (INVALIDATED, BEHIND):
            state = BUILDING
        statuses.append(
            PartitionStatus(
                partition_key=key,
                state=state,
                rows=version.row_count,
                bytes=version.bytes,
                version=version.version,
                table_version=version.table_version,
            )
        )
    return tuple(statuses)


def _place(key: str, span: Span | None) -> tuple[object, ...]:
    """By group, then by value; rows without a value last.

    Sorted by name, 1000-1500 would come before 500-1000.
    """
    if span is None:
        return (1, key)
    groups = tuple(
        (0, int(name), "") if name.lstrip("-").isdecimal() else (1, 0, name) for name in span.group.split("/")
    )
    return (0, groups, span.start is None, *(() if span.start is None else (span.start,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """What a node has still to process of its inputs."""

    zone: ZoneInfo
    filters: tuple[tuple[AllOf, tuple[str, ...]], ...]
    """Unread invalidations, each with its dataset's names of the partition's columns."""
    changed: tuple[Span | None, ...]
    """Where changed rows are; None: anywhere."""

    def judge(self, span: Span | None) -> str:
        if any(may_hold(where, columns, span, self.zone) for where, columns in self.filters):
            return INVALIDATED
        return BEHIND if any(may_share(span, changed, self.zone) for changed in self.changed) else FRESH


def _find_pending(
    project: Project, node: Node, record: NodeRecord, plan: Plan, observed: Observed
) -> _Pending:
    task = next((t for t in plan.tasks if t.node == node.name), None)
    writing = {t.node for t in plan.tasks}
    changed: set[Span | None] = set()
    for input_ in task.inputs if task else ():
        if input_.changes:
            # What this run will write to an input is not known before it does.
            unknown = task is not None and (task.strategy is Strategy.FULL or input_.dataset in writing)
            changed |= (
                {None}
                if unknown
                else _find_changed(project, node, input_, _commits(input_.dataset, record, observed))
            )
    return _Pending(
        zone=ZoneInfo(project.calendar.timezone),
        filters=tuple(_find_filters(node, record, observed)),
        changed=(None,) if None in changed else tuple(changed),
    )


def _find_filters(
    node: Node, record: NodeRecord, observed: Observed
) -> Iterator[tuple[AllOf, tuple[str, ...]]]:
    for input_ in node.inputs:
        if isinstance(input_.relation, By):
            for commit in _commits(input_.dataset, record, observed):
                for invalidation in commit.metadata.invalidations if commit.metadata else ():
                    columns = dict(observed.tables[input_.dataset].columns)
                    yield _typed(find_filter(invalidation.scope), columns), input_.relation.columns


def _typed(where: AllOf | None, columns: dict[str, str]) -> AllOf:
    """The filter with values of the columns' types. One that no longer fits its table may mean any row."""
    try:
        return check_filter(where or EVERY_ROW, columns)
    except CallError:
        return EVERY_ROW


def _find_changed(
    project: Project, node: Node, input_: PlannedInput, commits: tuple[CommitSummary, ...]
) -> set[Span | None]:
    """Where rows of an input changed, according to commits that name partitions of the same column.

    An invalidation alone changes none.
    """
    relation, theirs = node.get_input(input_.name).relation, project.get(input_.dataset).traits.partitioning
    if not isinstance(relation, By):
        return {None} if any(c.wakes_readers for c in commits) else set()
    spans: set[Span | None] = set()
    for commit in commits:
        if not commit.changes_rows:
            continue
        named = (
            commit.metadata.partitions
            if commit.metadata and commit.metadata.operation is Operation.REPLACE_PARTITIONS
            else ()
        )
        if theirs is None or theirs.column != relation.columns[-1] or not named:
            return {None}
        spans |= {find_span(theirs, project.calendar, p.partition_key) for p in named}
    return spans


def _commits(dataset: str, record: NodeRecord, observed: Observed) -> tuple[CommitSummary, ...]:
    """The commits of an input past the node's cursor."""
    cursor, table = record.cursors.get(dataset), observed.tables.get(dataset)
    return (
        table.commits_after(cursor.version) if cursor and table and cursor.table_id == table.table_id else ()
    )
