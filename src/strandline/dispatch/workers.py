"""Where Spark begins: the worker for each kind of node, and the primitive for each kind of write."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from strandline.compute.chain import worker as chain
from strandline.compute.entity import worker as entity
from strandline.compute.facts import quarantine
from strandline.compute.facts import worker as facts
from strandline.compute.job import worker as job
from strandline.compute.shape import prepare_in_shape
from strandline.compute.snapshot import worker as snapshot
from strandline.compute.timeline import worker as timeline
from strandline.compute.valuation import worker as valuation
from strandline.compute.view import worker as view
from strandline.ingest import receive
from strandline.lake import writes
from strandline.lake.ahead import replay_log
from strandline.lake.compaction import Compaction
from strandline.lake.log import count_added
from strandline.lake.small import spark_schema
from strandline.lake.table import get_table
from strandline.lake.work import Expected, Prepared, Work, Worker, Write
from strandline.model.catalog_records import NodeRecord
from strandline.model.columns import PARTITIONED_BY
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.definitions import ColumnWork, as_recorded, plan_task
from strandline.model.entity import Entity
from strandline.model.hashing import digest
from strandline.model.kind import NodeKind
from strandline.model.leases import Lease
from strandline.model.metadata import to_json
from strandline.model.node import Node
from strandline.model.plan import Cause, Cursor, Strategy, Task
from strandline.model.project import Chain, FactDataset, FileSource, Job, Quarantine, Snapshot
from strandline.model.publishing import ChangeLog, Trigger, View
from strandline.model.scope import EVERYTHING, follows_inputs
from strandline.model.timeline import Timeline, Valuation
from strandline.plan.clock import effective_as_of
from strandline.publish.change_log import worker as change_log
from strandline.publish.trigger import worker as trigger
from strandline.spark.session import fit_session

from .desk import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS: Mapping[NodeKind, Worker] = {
    FileSource.kind: receive,
    FactDataset.kind: facts,
    Quarantine.kind: quarantine,
    Snapshot.kind: snapshot,
    Chain.kind: chain,
    Job.kind: job,
    Timeline.kind: timeline,
    Valuation.kind: valuation,
    Entity.kind: entity,
    View.kind: view,
    ChangeLog.kind: change_log,
    Trigger.kind: trigger,
}
"""One of the tables that a new kind of node is added to."""


def prepare(
    desk: Desk,
    node: Node,
    task: Task,
    lease: Lease,
    record: NodeRecord | None,
    inputs: dict[str, Cursor],
    config: WrittenConfig,
) -> Prepared:
    """Compute what a task will write."""
    with writes.explained(node.name):
        prepared = _prepare(desk, node, task, lease, record, inputs, config)
        return replace(prepared, reshaped=_is_reshaped(desk, node, prepared.write))


def _prepare(
    desk: Desk,
    node: Node,
    task: Task,
    lease: Lease,
    record: NodeRecord | None,
    inputs: Mapping[str, Cursor],
    config: WrittenConfig,
) -> Prepared:
    changed = _count_changed(desk, task, inputs)
    columns = plan_task(node, task, record, node.config, inputs) if node.traits.origins else None
    attempt = f"{node.name}_{lease.token}"
    work = _make_work(desk, node, task, attempt, record, inputs, config, changed=changed, columns=columns)
    return prepare_in_shape(work, WORKERS[node.kind].prepare)


def read_ahead(desk: Desk, task: Task, written: frozenset[str]) -> None:
    """Read the log of the table that a task will commit to, and the small tables that it will read.

    A source, or facts, read nothing but what was added. A table that the run writes first has no final
    version yet.
    """
    node, small = desk.project.get(task.node), desk.shared.small
    own = desk.pins.find(node.name)
    if own is not None:
        # Few rows, whatever the table has: to compile the query over its log would take longer.
        session = fit_session(desk.session(), desk.project.settings, 0, own=False)
        replay_log(session, desk.lake.table(node.name))
    if node.traits.only_grows:
        return
    for dataset in (node.name, *(i.dataset for i in node.inputs if i.dataset not in written)):
        traits, pinned = desk.project.get(dataset).traits, desk.pins.find(dataset)
        if pinned is None or traits.only_grows:
            continue
        if traits.partitioned:
            small.fetch_heads(dataset, pinned.version)
        else:
            small.fetch(dataset, pinned.version)


def expect(desk: Desk, node: Node, record: NodeRecord, config: WrittenConfig) -> tuple[Work, Expected]:
    """Recompute a node in full over the input versions that it was computed from."""
    task = Task(
        node=node.name,
        kind=node.kind,
        cause=Cause.PERSON,
        strategy=Strategy.FULL,
        reason="verify",
        scope=EVERYTHING,
    )
    columns = as_recorded(node, record) if node.traits.origins else None
    work = _make_work(desk, node, task, node.name, record, record.cursors, config, columns=columns)
    return work, WORKERS[node.kind].expect(work)


def _make_work(
    desk: Desk,
    node: Node,
    task: Task,
    attempt: str,
    record: NodeRecord | None,
    inputs: Mapping[str, Cursor],
    config: WrittenConfig,
    *,
    changed: int | None = None,
    columns: ColumnWork | None = None,
) -> Work:
    """One attempt with everything pinned. `changed`: the number of changed input rows, where it is known."""
    own = desk.pins.find(node.name)
    live_rows = desk.pins.rows(node.name) if own else 0
    input_rows = {i.dataset: desk.pins.rows(i.dataset) for i in node.inputs}
    rows = task.estimated_rows if task.strategy is Strategy.APPEND else live_rows + sum(input_rows.values())
    settings = desk.project.settings
    session = fit_session(
        desk.session(),
        settings,
        rows,
        own=node.traits.runs_code,
        changed=changed,
        read=task.estimated_rows,
        variables=len(node.traits.origins),
    )
    return Work(
        project=desk.project,
        node=node,
        task=task,
        session=session,
        lake=desk.lake,
        run=desk.run,
        as_of=effective_as_of(node, record, desk.as_of, task),
        as_of_before=datetime.fromisoformat(record.as_of) if record and own and record.as_of else None,
        now=desk.now(),
        inputs=inputs,
        own_version=own.version if own else None,
        live_rows=live_rows,
        input_rows=input_rows,
        files=record.files if record and own else {},
        partitions=record.partitions if record and own else {},
        waiting=record.waiting if record and own else (),
        config=config,
        columns=columns,
        stale=record is not None and any(c.hash != config.hash for c in record.configs),
        accept_guard=node.name in desk.accept_guard,
        quiet=node.name in desk.quiet,
        counts=record.counts if record and own else {},
        shared=desk.shared,
        attempt=attempt,
        scratch=desk.scratch,
    )


def _count_changed(desk: Desk, task: Task, inputs: Mapping[str, Cursor]) -> int | None:
    """Number of changed input rows. None for a full recompute, or where it is unknown."""
    if task.strategy is Strategy.FULL or (task.inputs and not follows_inputs(task.scope)):
        return None
    total = 0
    for planned in task.inputs:
        now = inputs[planned.dataset].version
        if not planned.changes or planned.after is None or planned.after.version >= now:
            continue
        staged = desk.shared.find_changes(planned.dataset, planned.after.version, now)
        if staged is not None:
            total += staged.counts["new_rows"] + staged.counts["old_rows"]
        elif desk.project.get(planned.dataset).traits.only_grows:
            total += count_added(desk.lake.table(planned.dataset), planned.after.version, now)
        else:
            return None
    return total


def _is_reshaped(desk: Desk, node: Node, write: Write | None) -> bool:
    """Whether a write replaces the table with one that lacks a column of it, or has one in another type."""
    own = desk.pins.find(node.name)
    if own is None or write is None or write.operation is not Operation.OVERWRITE:
        return False
    assert write.rows is not None
    types = {f.name: f.dataType.simpleString() for f in write.rows.schema}
    before = spark_schema(get_table(desk.lake.table(node.name), own.version))
    return any(types.get(f.name) != f.dataType.simpleString() for f in before)


def hash_schema(write: Write) -> str:
    """A digest of the columns and types that a write has."""
    assert write.rows is not None
    return digest([[f.name, f.dataType.simpleString()] for f in write.rows.schema])


@contextmanager
def _naming_errors(write: Write) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        named = write.name_error(error) if write.name_error else None
        if named is None:
            raise
        raise named from error


def commit_write(desk: Desk, write: Write, lease: Lease, metadata: str) -> None:
    """Commit a prepared write by the primitive it names."""
    ticket = writes.Ticket(dataset=lease.dataset, token=lease.token, metadata=metadata)
    assert write.rows is not None
    with writes.explained(ticket.dataset), _naming_errors(write):
        match write.operation:
            case Operation.APPEND | Operation.COUNTS:
                writes.append(
                    write.rows,
                    desk.lake,
                    ticket,
                    received=write.received,
                    first=desk.pins.find(lease.dataset) is None,
                    indexed=desk.project.indexed(lease.dataset),
                )
            case Operation.INSERT_NEW:
                writes.insert_new(write.rows, desk.lake, ticket)
            case Operation.REPLACE_KEYS if write.superseding:
                writes.replace_superseded(write.rows, desk.lake, ticket, write.superseding)
            case Operation.REPLACE_KEYS if not write.replaced:
                writes.replace_keys(write.rows, desk.lake, ticket, within=write.within)
            case Operation.REPLACE_KEYS | Operation.REPLACE_PARTITIONS:
                writes.replace_listed(write.rows, desk.lake, ticket, write.replaced, within=write.within)
            case Operation.OVERWRITE:
                node = desk.project.get(lease.dataset)
                writes.overwrite(
                    write.rows,
                    desk.lake,
                    ticket,
                    indexed=desk.project.indexed(node.name),
                    partitioned_by=PARTITIONED_BY if node.traits.partitioned else (),
                )
            case other:
                raise ValueError(f"no worker prepares {other}")


def commit_nothing(desk: Desk, node: Node, lease: Lease, operation: Operation, **statements: Any) -> None:
    """An empty commit with our token: no smaller token can commit after it (L7)."""
    session = _session(desk, node)
    writes.commit_nothing(session, desk.lake, _bare_ticket(desk, node, lease, operation, **statements))


def commit_purge(desk: Desk, node: Node, lease: Lease) -> None:
    writes.purge(_session(desk, node), desk.lake, _bare_ticket(desk, node, lease, Operation.PURGE))


def commit_compaction(desk: Desk, node: Node, lease: Lease, compaction: Compaction) -> None:
    ticket = _bare_ticket(desk, node, lease, Operation.COMPACT)
    writes.compact(_session(desk, node, own=True), desk.lake, ticket, compaction)


def commit_statistics(desk: Desk, node: Node, lease: Lease, columns: Sequence[str]) -> None:
    """From now on, new files have statistics of these columns."""
    ticket = _bare_ticket(desk, node, lease, Operation.STATISTICS)
    writes.keep_statistics(_session(desk, node, own=True), desk.lake, ticket, columns)


def _session(desk: Desk, node: Node, *, own: bool = False) -> "SparkSession":
    with writes.explained(node.name):
        return fit_session(desk.session(), desk.project.settings, desk.pins.rows(node.name), own=own)


def _bare_ticket(
    desk: Desk, node: Node, lease: Lease, operation: Operation, **statements: Any
) -> writes.Ticket:
    """For commits that move no cursor."""
    metadata = CommitMetadata.bare(
        run=desk.run, node=node.name, token=lease.token, operation=operation, as_of=desk.as_of.isoformat()
    )
    return writes.Ticket(
        dataset=node.name, token=lease.token, metadata=to_json(replace(metadata, **statements))
    )
