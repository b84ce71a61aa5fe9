"""`invalidate`: record, by a commit on its table, that readers must process a scope of a dataset again."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.catalog import audit
from strandline.dispatch.invalidate import commit_invalidations
from strandline.model.commits import Invalidation
from strandline.model.condition_checks import check_filter
from strandline.model.condition_json import from_row_filter, to_row_filter
from strandline.model.condition_text import describe
from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.errors import CallError
from strandline.model.node import By, Node
from strandline.model.partitions import decode_group, find_edges, find_span
from strandline.model.plan import Plan
from strandline.model.project import Partitioning
from strandline.model.scope import Partitions, Rows
from strandline.plan import Observed
from strandline.plan.selection import get_nodes
from strandline.sql.filters import parse_filter

from .clock import now
from .planning import RunRequest
from .run import make_desk, open_lake, run_name
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidateRequest:
    """What `invalidate` asks for. Exactly one of `where`, `row_filter` and `partition` defines the scope."""

    dataset: str
    reason: str
    where: str = ""
    row_filter: object = None
    partition: str = ""
    source_event: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidated:
    invalidation: Invalidation
    dataset: str
    table_version: int
    jobs: tuple[str, ...]
    """The jobs that will process it."""
    text: str


def invalidate(
    workspace: Workspace,
    name: str,
    *,
    reason: str,
    where: str = "",
    row_filter: object = None,
    partition: str = "",
    source_event: Mapping[str, object] | None = None,
    request: str = "",
) -> Invalidated:
    """Check the scope against the dataset's columns, then commit it.

    Exactly one of `where`, `row_filter` and `partition` defines the scope. `request` is the id of a server's
    request, which is recorded once however often it is tried.
    """
    found = _find_rows(workspace, name, where=where, row_filter=row_filter, partition=partition)
    node, observed, jobs, checked = found.node, found.observed, found.jobs, found.rows
    started_at = now()
    invalidation = Invalidation(
        id=_make_id(node.name, request or started_at.isoformat(), checked),
        scope=Partitions(names=(partition,), where=checked) if partition else Rows(where=checked),
        reason=reason,
        source_event=source_event or {},
    )
    session = open_lake(workspace, started_at)
    desk = make_desk(
        workspace, observed, Plan(as_of=started_at, tasks=()), run_name(started_at), session, RunRequest()
    )
    version = commit_invalidations(desk, node, (invalidation,))
    audit(workspace.catalog, "invalidate", {"dataset": node.name, "id": invalidation.id, "reason": reason})
    return Invalidated(
        invalidation=invalidation,
        dataset=node.name,
        table_version=version,
        jobs=tuple(n.name for n in jobs),
        text=describe(checked),
    )


def check_invalidation(workspace: Workspace, request: InvalidateRequest) -> None:
    """Raise what is wrong with a request, as `invalidate` would."""
    _find_rows(
        workspace,
        request.dataset,
        where=request.where,
        row_filter=request.row_filter,
        partition=request.partition,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    node: Node
    observed: Observed
    jobs: list[Node]
    """The jobs that will process the invalidation."""
    rows: AllOf


def _find_rows(workspace: Workspace, name: str, *, where: str, row_filter: object, partition: str) -> _Found:
    """What an invalidation is about, checked against the dataset's columns."""
    node = _find_dataset(workspace, name)
    observed = workspace.observe()
    if node.name not in observed.tables:
        raise CallError(
            f"`{node.name}` has not been built yet.", remedy="Run `strandline run` first.", slug="not-built"
        )
    jobs = [n for n in workspace.project.readers_of(node.name) if n.traits.answers_invalidations]
    if not jobs:
        raise CallError(
            f"No job reads `{node.name}`, so nothing would be processed again.",
            remedy="Invalidate what a job reads; to compute it again itself, use"
            f" `strandline backfill {name} --all`.",
            slug="no-reader",
        )
    if partition:
        requested = _partition_filter(
            workspace, node, jobs, partition, dict(observed.tables[node.name].columns)
        )
    else:
        requested = parse_filter(where) if where else from_row_filter(row_filter)
    checked = check_filter(requested, dict(observed.tables[node.name].columns))
    return _Found(node=node, observed=observed, jobs=jobs, rows=checked)


def _find_dataset(workspace: Workspace, name: str) -> Node:
    """The table with this name in SQL. A job's name means its output."""
    project = workspace.project
    table = project.tables.get(name)
    return project.get(table) if table else project.get(get_nodes(project, name)[-1])


def _make_id(dataset: str, asked: str, rows: AllOf) -> str:
    """`asked` is when it was asked for, or the id of the request."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{dataset} {asked} {to_row_filter(rows)}"))


def _partition_filter(
    workspace: Workspace, node: Node, jobs: list[Node], name: str, types: Mapping[str, str]
) -> AllOf:
    """The rows of a partition.

    The dataset's own partitioning defines it, or that of the one job reading it by partitions.
    """
    partitioning, columns, partitioned = _find_partitioning(node, jobs)
    span = find_span(partitioning, workspace.project.calendar, name)
    if span is None:
        remedy = f"`strandline status {partitioned}` lists the partitions."
        raise CallError(f"`{node.name}` has no partition `{name}`.", remedy=remedy, slug="unknown-partition")
    values = decode_group(span.group) if columns[1:] else []
    groups = [_is_value(c, value, types.get(c, "")) for c, value in zip(columns[:-1], values, strict=True)]
    if span.start is None or span.end is None:
        return AllOf(parts=(*groups, Comparison(column=columns[-1], operator=Operator.IS_NULL, value=True)))
    start, end = find_edges(partitioning, span, name, types.get(columns[-1], ""))
    edges = ((Operator.GTE, start), (Operator.LT, end))
    between = (
        Comparison(column=columns[-1], operator=operator, value=edge)
        for operator, edge in edges
        if edge is not None
    )
    return AllOf(parts=(*groups, *between))


def _is_value(column: str, text: str | None, kind: str) -> Comparison:
    """A group's value from its text in a partition's name."""
    if text is None:
        return Comparison(column=column, operator=Operator.IS_NULL, value=True)
    if kind == "boolean":
        return Comparison(column=column, operator=Operator.EQ, value=text == "true")
    whole = kind in ("long", "integer", "short", "byte", "bigint", "int")
    return Comparison(column=column, operator=Operator.EQ, value=int(text) if whole else text)


def _find_partitioning(node: Node, jobs: list[Node]) -> tuple[Partitioning, tuple[str, ...], str]:
    """The partitioning, the columns here that determine a partition, and a dataset with such partitions."""
    if node.traits.partitioning is not None:
        return node.traits.partitioning, node.key, node.name
    job_by_partitioning = {
        (job.traits.partitioning, input_.relation.columns): job.name
        for job in jobs
        for input_ in job.inputs
        if input_.dataset == node.name
        and isinstance(input_.relation, By)
        and job.traits.partitioning is not None
    }
    if len(job_by_partitioning) != 1:
        raise CallError(
            f"`{node.name}` has no partitions of its own, and"
            f" {'several jobs read it' if job_by_partitioning else 'no job reads it'} by partitions.",
            remedy="Use `--where`.",
            slug="no-partitions",
        )
    (((partitioning, columns), job),) = job_by_partitioning.items()
    return partitioning, columns, job
