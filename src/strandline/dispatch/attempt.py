"""One attempt of one task: lease, fence and settle, pin, prepare, write, confirm, record."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strandline.catalog import find_node, record_unchanged
from strandline.ingest.inbox import put_away
from strandline.lake.log import find_complete, read_entries
from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.definitions import plan_task
from strandline.model.errors import StrandlineError, WorkError
from strandline.model.hashing import with_lookups
from strandline.model.metadata import to_json
from strandline.model.node import By, Input, Lookup, Node, NodeConfig
from strandline.model.plan import Cause, Cursor, Status, Strategy, Task, TaskResult, conclude
from strandline.model.scope import follows_inputs
from strandline.model.traits import OnClock
from strandline.plan.clock import effective_as_of
from strandline.plan.staleness import find_frozen

from .desk import Desk
from .failpoints import reach
from .holding import Held, holding
from .settle import task_id
from .statistics import keep_statistics

if TYPE_CHECKING:
    from strandline.lake.work import Prepared, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A task whose node is held and whose inputs are pinned."""

    desk: Desk
    node: Node
    task: Task
    held: Held
    record: NodeRecord | None
    inputs: dict[str, Cursor]

    @property
    def as_of(self) -> str:
        return effective_as_of(self.node, self.record, self.desk.as_of, self.task).isoformat()


def attempt(desk: Desk, task: Task) -> TaskResult:
    """Try a task once. Raises what went wrong.

    A commit that stands although its answer was lost is found, and counts.
    """
    started = time.monotonic()
    node, rebuilds = desk.project.get(task.node), task.strategy is Strategy.FULL
    # Where rows of someone else lie in the table, only what replaces them may be committed after them.
    kept = () if rebuilds else keep_statistics(desk, node)
    with holding(desk, node, rebuilds=rebuilds) as held:
        result = _work(_pin_inputs(desk, node, task, held))
    seconds = round(time.monotonic() - started, 3)
    return replace(result, seconds=seconds, notes=(*kept, *held.notes, *result.notes))


def _pin_inputs(desk: Desk, node: Node, task: Task, held: Held) -> _Attempt:
    reach("before-pin", node.name)
    record = find_node(desk.catalog, node.name)
    cursors = record.cursors if record else {}
    # Where columns have a definition each, those of an input that was never received wait alone.
    lacks = {i.dataset for i in node.inputs if node.traits.origins and desk.pins.find(i.dataset) is None}
    inputs = {
        i.dataset: _pin(_readable(desk, node, i), cursors.get(i.dataset))
        for i in node.inputs
        if i.dataset not in lacks
    }
    reach("after-pin", node.name)
    task = _with_cursors(task, record if desk.pins.find(node.name) or not node.traits.publishes else None)
    task = replace(task, inputs=tuple(i for i in task.inputs if i.dataset not in lacks))
    return _Attempt(desk=desk, node=node, task=task, held=held, record=record, inputs=inputs)


def _work(this: _Attempt) -> TaskResult:
    """Compute and commit, if there is anything to do."""
    desk, node, task, inputs = this.desk, this.node, this.task, this.inputs
    result = replace(
        conclude(task, Status.UNCHANGED),
        input_versions={name: cursor.version for name, cursor in inputs.items()},
        rows_full=sum(desk.pins.rows(i.dataset) for i in node.inputs),
    )
    if not _has_work(desk, task, inputs) or _was_built(desk, node, task, this.record, inputs):
        return result
    _refuse_rewritten(desk, task, inputs)
    current = _current_config(desk, node, inputs)
    _refuse_frozen(node, task, this.record, current)
    config = _config_after(node, task, this.record, current, inputs)
    reach("before-prepare", node.name)
    workers = desk.workers()  # Spark only from here on
    prepared = workers.prepare(desk, node, task, this.held.lease, this.record, inputs, config)
    reach("after-prepare", node.name)
    readable = prepared.write is not None or desk.pins.find(node.name) is not None
    result = _describe(result, task, prepared)
    if node.traits.partitioned:
        result = replace(result, left=prepared.waiting)
    if prepared.write is None:
        _record_unchanged(this, prepared)
    else:
        result = _commit(this, prepared, prepared.write, config, result)
    if prepared.posts:
        result = _put_away(this, prepared, result)
    return _left_out(result, prepared.refused, readable=readable)


def _describe(result: TaskResult, task: Task, prepared: "Prepared") -> TaskResult:
    """The result with what computing it found."""
    counts = {**prepared.counts, **prepared.task_counts}
    if waiting := sum(f.unfinished for f in prepared.files):
        counts["unfinished"] = waiting
    return replace(
        result,
        rows_read=prepared.rows_read,
        rows_full=prepared.rows_full or result.rows_full,
        covered=prepared.scope,
        counts=counts,
        notes=prepared.notes,
        batches=prepared.batches,
    )


def _record_unchanged(this: _Attempt, prepared: "Prepared") -> None:
    """Nothing differs: cursors move in the catalog alone."""
    own = this.desk.pins.find(this.node.name)
    reach("before-record", this.node.name)
    record_unchanged(
        this.desk.catalog,
        this.held.lease,
        kind=this.node.kind,
        cursors=this.inputs,
        files=prepared.files,
        as_of=this.as_of,
        table_version=own.version if own else None,
        release=True,
        waiting=prepared.waiting,
    )
    this.held.returned = True
    reach("after-record", this.node.name)


def _commit(
    this: _Attempt, prepared: "Prepared", write: "Write", config: WrittenConfig, result: TaskResult
) -> TaskResult:
    desk, node, held = this.desk, this.node, this.held
    workers, first = desk.workers(), desk.pins.find(node.name) is None
    metadata = CommitMetadata(
        run=desk.run,
        task=task_id(desk, held.lease),
        node=node.name,
        token=held.lease.token,
        operation=write.operation,
        inputs=this.inputs,
        scope=prepared.scope,
        cause=this.task.cause.value,
        config=config,
        whole=prepared.whole,
        as_of=this.as_of,
        counts=prepared.counts,
        files=prepared.files,
        rows=prepared.live_rows,
        schema_hash=workers.hash_schema(write) if prepared.partitions else "",
        partitions=prepared.partitions,
        waiting=prepared.waiting,
        invalidations=prepared.invalidations,
        reshaped=prepared.reshaped,
        onto=held.version,
        published_to=desk.project.published_to(node.name),
    )
    written = held.write(lambda: workers.commit_write(desk, write, held.lease, to_json(metadata)))
    committed = held.record(written, prepared.live_rows)
    if prepared.changes is not None and not first:
        desk.shared.hand_on(node.name, committed.version, prepared.changes)
    return replace(
        result,
        status=Status.DONE,
        rows_written=prepared.rows_written,
        table_version=committed.version,
        token=held.lease.token,
        tombstones=prepared.tombstones,
        notes=(*result.notes, *written.notes),
    )


def _put_away(this: _Attempt, prepared: "Prepared", result: TaskResult) -> TaskResult:
    """Move posts that are received and recorded out of the inbox.

    If that fails, they stay there, and the next task finds that it has them.
    """
    try:
        put_away(this.desk.lake.inbox(this.node.name), prepared.posts, this.desk.now())
    except OSError as error:
        note = f"{len(prepared.posts)} posts are received and stay in the inbox: {error.strerror}"
        return replace(result, notes=(*result.notes, note))
    return result


def _left_out(result: TaskResult, refused: StrandlineError | None, *, readable: bool) -> TaskResult:
    """A task that had to leave a part of its source out has failed, although what it published stands.

    `readable`: there is a table, so readers can go on.
    """
    if refused is None:
        return result
    return replace(result, status=Status.FAILED, partly=readable, error=str(refused), slug=refused.slug)


def _config_after(
    node: Node, task: Task, record: NodeRecord | None, current: NodeConfig, inputs: dict[str, Cursor]
) -> WrittenConfig:
    """What a commit of this task records.

    Where columns have a definition each, it is the one that each of them then has.
    """
    if not node.traits.origins:
        return WrittenConfig(hash=current.hash, parts=current.parts)
    return plan_task(node, task, record, current, inputs).config


def _readable(desk: Desk, node: Node, input_: Input) -> Cursor:
    """The version of an input that a node may read.

    A table that is being published in batches is read as it was before the first of them, unless each group
    of keys that is published together is whole in what the node computes from it.
    """
    now, traits = desk.pins.get(input_.dataset), desk.project.get(input_.dataset).traits
    if not traits.partitioned:
        return now
    relation = input_.relation
    if traits.together and isinstance(relation, By) and set(traits.together) <= set(relation.columns):
        return now
    return replace(now, version=find_complete(desk.lake.table(input_.dataset), now.version))


def _pin(observed: Cursor, read: Cursor | None) -> Cursor:
    """The version that this run reads: the one observed, or a later one that another run published from.

    All rows must come from one state (L2).
    """
    if read is None or read.table_id != observed.table_id:
        return observed
    return max(observed, read, key=lambda cursor: cursor.version)


def _with_cursors(task: Task, record: NodeRecord | None) -> Task:
    """The cursors as they stand after settling: a commit found in the log has moved them."""
    if record is None or task.strategy is Strategy.FULL:
        return task
    return replace(
        task, inputs=tuple(replace(i, after=record.cursors.get(i.dataset, i.after)) for i in task.inputs)
    )


def _has_work(desk: Desk, task: Task, inputs: dict[str, Cursor]) -> bool:
    """Whether anything is left of a task's scope, now that it is known which inputs have moved."""
    if desk.project.get(task.node).traits.receives and task.cause is Cause.GAP:
        return False  # settling was its work
    if not task.inputs or not follows_inputs(task.scope):
        return True
    return any(i.changes and has_changed(desk, i.dataset, i.after, inputs[i.dataset]) for i in task.inputs)


def _was_built(
    desk: Desk, node: Node, task: Task, record: NodeRecord | None, inputs: dict[str, Cursor]
) -> bool:
    """Whether a node is new to the catalog alone: settling found its table up to date (L6)."""
    own = desk.pins.find(node.name)
    if (
        task.cause is not Cause.NEW_NODE
        or task.strategy is not Strategy.FULL
        or record is None
        or own is None
    ):
        return False
    if any(has_changed(desk, name, record.cursors.get(name), now) for name, now in inputs.items()):
        return False
    at = effective_as_of(node, record, desk.as_of, task)
    if node.traits.clock is not OnClock.NOTHING and record.as_of != at.isoformat():
        return False
    if has_changed(desk, node.name, Cursor(table_id=record.table_id, version=record.table_version), own):
        return False
    config = _config_after(node, task, None, _current_config(desk, node, inputs), inputs)
    return [c.hash for c in record.configs] == [config.hash]


def has_changed(desk: Desk, dataset: str, after: Cursor | None, now: Cursor) -> bool:
    if after is None or after.table_id != now.table_id:
        return True
    if after.version >= now.version:
        return False
    return any(
        e.wakes_readers
        for e in read_entries(desk.lake.table(dataset), after.version)
        if e.version <= now.version
    )


def _refuse_frozen(node: Node, task: Task, record: NodeRecord | None, current: NodeConfig) -> None:
    """Refuse to go on from another configuration.

    When the run was planned, the catalog may not have known the configuration of the last commit. Settling
    has recorded it since.
    """
    if task.overwrite or record is None or (frozen := find_frozen(node, record, current)) is None:
        return
    raise WorkError(
        f"`{node.name}` was last written by a configuration that this one cannot continue: "
        f"{', '.join(frozen.changed)} changed.",
        remedy=f"`strandline backfill {node.name} --all` rewrites it.",
        slug="frozen",
    )


def _refuse_rewritten(desk: Desk, task: Task, inputs: dict[str, Cursor]) -> None:
    """Refuse an increment across a rewrite of an input that the plan did not foresee."""
    for planned in task.inputs:
        if task.strategy in (Strategy.APPEND, Strategy.FULL) or not planned.changes or planned.after is None:
            continue
        upto = inputs[planned.dataset].version
        entries = [
            e
            for e in read_entries(desk.lake.table(planned.dataset), planned.after.version)
            if e.version <= upto
        ]
        if any(e.metadata and e.metadata.operation is Operation.OVERWRITE for e in entries):
            raise WorkError(
                f"`{planned.dataset}` was rewritten, which the plan of this run did not foresee.",
                remedy=f"Run `strandline run` again: it recomputes `{task.node}` from all of it.",
                slug="written-anew",
            )


def _current_config(desk: Desk, node: Node, inputs: dict[str, Cursor]) -> NodeConfig:
    lookups: dict[str, int] = {}
    for node_input in node.inputs:
        if isinstance(node_input.relation, Lookup):
            entries = read_entries(desk.lake.table(node_input.dataset), -1)
            lookups[node_input.name] = max(
                (
                    e.version
                    for e in entries
                    if e.changes_rows and e.version <= inputs[node_input.dataset].version
                ),
                default=0,
            )
    return with_lookups(node.config, lookups)
