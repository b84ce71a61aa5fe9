"""One attempt of one task: lease, fence and settle, pin, prepare, write, confirm, record."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from strandline.catalog import acquire_lease, find_node, next_token, record_commit, record_unchanged, release_lease
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.session import SPARK_LOST
from strandline.lake.state import count_live, open_table, read_token
from strandline.model.errors import ConflictError, FencedError, StrandlineError, WorkError
from strandline.model.hashing import with_lookups
from strandline.model.metadata import to_json
from strandline.model.node import Lookup, Node
from strandline.model.plan import Cause, Cursor, Status, Strategy, Task, TaskResult
from strandline.model.project import Job
from strandline.model.records import CommitMetadata, CommitRecord, Lease, NodeRecord, Operation, WrittenConfig

from .desk import Desk
from .failpoints import reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a table's log held past what the catalog knew."""

    found: int
    """Commits of ours that changed rows; they are recorded now."""
    foreign: tuple[int, ...]
    """Versions that someone else wrote and that no later commit of ours wrote over."""


def attempt(desk: Desk, task: Task) -> TaskResult:
    """Try a task once. Raises what went wrong; a commit that stands although its answer was lost is found and counts."""
    started = time.monotonic()
    node = desk.project.get(task.node)
    lease, notes = take(desk, node, rebuilds=task.strategy is Strategy.FULL)
    try:
        result = _work(desk, node, task, lease)
    except BaseException as error:
        give_back(desk, node, lease, error)
        raise
    return replace(result, seconds=round(time.monotonic() - started, 3), notes=(*notes, *result.notes))


def take(desk: Desk, node: Node, *, rebuilds: bool) -> tuple[Lease, tuple[str, ...]]:
    """Steps 1 and 2: the lease, and after an unclean end the fence; then the catalog is told of every commit of ours that it has missed.

    `rebuilds`: what follows replaces or compares the whole table, so rows that someone else wrote are dealt with.
    """
    reach("before-lease", node.name)
    seconds = desk.project.settings.lease_seconds
    # On a lake with one writer we hold the JVM's lock: whoever held the lease is gone.
    lease = acquire_lease(desk.catalog, node.name, desk.holder, seconds, read_token(desk.lake, node.name), desk.lake.one_writer)
    reach("after-lease", node.name)
    notes: tuple[str, ...] = ()
    if lease.must_fence and list_versions(desk.lake.table(node.name)):
        reach("before-fence", node.name)
        _fence(desk, node, lease)
        reach("after-fence", node.name)
        notes = (f"fenced off a writer that did not end cleanly (token {lease.token})",)
    reach("before-settle", node.name)
    settled = settle(desk, node, lease)
    reach("after-settle", node.name)
    if settled.found:
        notes = (*notes, f"found {settled.found} commit(s) of ours that the catalog did not know")
    if settled.foreign:
        versions = ", ".join(map(str, settled.foreign))
        if node.inputs and not rebuilds:
            release_lease(desk.catalog, lease)
            raise WorkError(
                f"Someone else wrote version {versions} of `{node.name}` after this run was planned.",
                remedy=f"Run again: it is shown in the plan, and `{node.name}` is rebuilt.",
                slug="foreign-commit",
            )
        notes = (*notes, f"version {versions} is not Strandline's")
    return (next_token(desk.catalog, lease) if lease.must_fence else lease), notes


def settle(desk: Desk, node: Node, lease: Lease) -> Settled:
    """Record every commit of ours in the table's log that the catalog has missed, and pin the table as it is: no "unknown" is left.

    Nothing is recorded past rows that someone else wrote: the planner has to see them until the table was rebuilt (L13).
    """
    record, own = find_node(desk.catalog, node.name), desk.pins.find(node.name)
    uri = desk.lake.table(node.name)
    versions = list_versions(uri)
    if not versions:
        return Settled(found=0, foreign=())
    if record and own and record.table_id == own.table_id and record.table_version == own.version == versions[-1]:
        return Settled(found=0, foreign=())
    table = open_table(uri)
    assert table is not None
    table_id = str(table.metadata().id)
    known = record.table_version if record and record.table_id == table_id else -1
    entries = list(read_entries(uri, known))
    foreign = _find_foreign(entries)
    known_good = [e for e in entries if not (foreign and node.inputs) or e.version < foreign[0]]
    found = [r for e in known_good if (r := e.record(table_id)) is not None]
    rows = next((r.metadata.rows for r in reversed(found) if r.metadata.rows >= 0), record.row_count if record else 0)
    if found:
        record_commit(
            desk.catalog, lease, tuple(found), kind=node.kind, location=uri, row_count=rows, bytes_=_bytes(desk, node), release=False
        )
    if foreign:
        rows = count_live(table)  # what the catalog has is not of these rows
    desk.pins.move(node.name, Cursor(table_id=table_id, version=max(e.version for e in entries) if entries else versions[-1]), rows)
    return Settled(found=sum(1 for r in found if r.metadata.operation.changes_rows), foreign=foreign)


def _find_foreign(entries: Sequence[LogEntry]) -> tuple[int, ...]:
    """The versions that changed rows without our metadata. What an overwrite of ours came after is gone, whatever it was."""
    overwritten = max((e.version for e in entries if e.metadata and e.metadata.operation is Operation.OVERWRITE), default=-1)
    return tuple(e.version for e in entries if e.version > overwritten and e.changes_rows and e.metadata is None)


def _work(desk: Desk, node: Node, task: Task, lease: Lease) -> TaskResult:
    reach("before-pin", node.name)
    record = find_node(desk.catalog, node.name)
    task = _with_cursors(task, record)
    inputs = {i.dataset: desk.pins.get(i.dataset) for i in node.inputs}
    reach("after-pin", node.name)
    versions = {name: cursor.version for name, cursor in inputs.items()}
    result = TaskResult(
        node=node.name,
        kind=node.kind,
        cause=task.cause,
        strategy=task.strategy,
        reason=task.reason,
        scope=task.scope,
        status=Status.UNCHANGED,
        input_versions=versions,
        rows_full=sum(desk.pins.rows(i.dataset) for i in node.inputs),
        counts={},
    )
    if not _has_work(desk, task, inputs) or _was_built(desk, node, task, record, inputs):
        release_lease(desk.catalog, lease)
        return result
    return _compute_and_commit(desk, node, task, lease, record, inputs, result)


def _compute_and_commit(
    desk: Desk, node: Node, task: Task, lease: Lease, record: NodeRecord | None, inputs: dict[str, Cursor], result: TaskResult
) -> TaskResult:
    from .workers import commit_write, prepare  # Spark only from here on

    config = _written_config(desk, node, inputs)
    reach("before-prepare", node.name)
    prepared = prepare(desk, node, task, lease, record, inputs, config)
    reach("after-prepare", node.name)
    counts = dict(prepared.counts)
    if waiting := sum(f.unfinished for f in prepared.files):
        counts["unfinished"] = waiting
    result = replace(
        result,
        rows_read=prepared.rows_read,
        rows_full=prepared.rows_full or result.rows_full,
        scope=replace(
            task.scope, text=task.scope.text if prepared.scope in ("", task.scope.text) else f"{task.scope.text}: {prepared.scope}"
        ),
        counts=counts,
        notes=prepared.notes,
    )
    as_of = desk.as_of.isoformat()
    if prepared.write is None:
        own = desk.pins.find(node.name)
        reach("before-record", node.name)
        record_unchanged(
            desk.catalog,
            lease,
            kind=node.kind,
            cursors=inputs,
            files=prepared.files,
            as_of=as_of,
            table_version=own.version if own else None,
            release=True,
        )
        reach("after-record", node.name)
        return result
    metadata = CommitMetadata(
        run=desk.run,
        task=task_id(desk, lease),
        node=node.name,
        token=lease.token,
        operation=prepared.write.operation,
        inputs=inputs,
        scope=prepared.scope,
        cause=task.cause.value,
        config=config,
        whole=prepared.whole,
        as_of=as_of,
        counts=prepared.counts,
        files=prepared.files,
        rows=prepared.live_rows,
    )
    before = desk.pins.find(node.name)
    write = prepared.write
    entry, lost = write_and_confirm(
        desk, node, lease, before.version if before else -1, lambda: commit_write(desk, write, lease, to_json(metadata))
    )
    committed = record_entry(desk, node, lease, entry, prepared.live_rows)
    if prepared.changes is not None and before is not None:
        desk.shared.hand_on(node.name, _quiet_since(desk, node, before.version), committed.version, prepared.changes)
    return replace(
        result,
        status=Status.DONE,
        rows_written=prepared.rows_written,
        table_version=committed.version,
        tombstones=prepared.tombstones,
        notes=(*result.notes, *lost),
    )


def write_and_confirm(
    desk: Desk, node: Node, lease: Lease, own_version: int, write: Callable[[], None]
) -> tuple[LogEntry, tuple[str, ...]]:
    """Steps 4 and 5: what the log says counts, whatever the call said. Looks at every version between the pinned one and ours."""
    failed: BaseException | None = None
    reach("before-write", node.name)
    try:
        write()
        reach("after-write", node.name)
    except BaseException as error:  # noqa: BLE001 the log is asked first; without our commit in it, it is raised
        failed = error
    reach("before-confirm", node.name)
    entries = list(read_entries(desk.lake.table(node.name), own_version))
    entry = _find_ours(desk, lease, entries)
    reach("after-confirm", node.name)
    if entry is None:
        if failed is not None:
            raise failed
        raise FencedError(
            f"The commit of `{node.name}` with token {lease.token} was refused by its table: a newer writer was there.",
            remedy="Nothing was changed; it is planned afresh.",
        )
    between = _find_foreign([e for e in entries if e.version <= entry.version])
    if between and node.inputs:
        # Ours stands, computed without those rows. Unrecorded and with the lease unreturned it is found again, and so are they.
        raise ConflictError(
            f"Someone else wrote version {', '.join(map(str, between))} of `{node.name}` while this task was writing it.",
            remedy=f"Run again: it is shown in the plan, and `{node.name}` is rebuilt.",
            slug="foreign-commit",
        )
    return entry, (f"its commit stands, although the answer was lost: {failed}",) if failed else ()


def find_commit(desk: Desk, node: Node, lease: Lease, own_version: int) -> LogEntry | None:
    """Our commit in the log, by task id."""
    return _find_ours(desk, lease, list(read_entries(desk.lake.table(node.name), own_version)))


def _find_ours(desk: Desk, lease: Lease, entries: Sequence[LogEntry]) -> LogEntry | None:
    wanted = task_id(desk, lease)
    return next((e for e in entries if e.metadata and e.metadata.task == wanted), None)


def record_entry(desk: Desk, node: Node, lease: Lease, entry: LogEntry, live_rows: int) -> Cursor:
    """Step 6: one catalog transaction checks the token, moves cursors and counts, and releases the lease."""
    uri = desk.lake.table(node.name)
    known = desk.pins.find(node.name)
    if known is not None:
        table_id = known.table_id
    else:
        table = open_table(uri)
        assert table is not None
        table_id = str(table.metadata().id)
    record = entry.record(table_id)
    assert isinstance(record, CommitRecord)
    reach("before-record", node.name)
    record_commit(
        desk.catalog, lease, (record,), kind=node.kind, location=uri, row_count=live_rows, bytes_=_bytes(desk, node), release=True
    )
    reach("after-record", node.name)
    cursor = Cursor(table_id=table_id, version=entry.version)
    desk.pins.move(node.name, cursor, live_rows)
    return cursor


def task_id(desk: Desk, lease: Lease) -> str:
    """Unique per attempt: the token grows with each."""
    return f"{desk.run}/{lease.dataset}/{lease.token}"


def _fence(desk: Desk, node: Node, lease: Lease) -> None:
    from .workers import commit_fence

    commit_fence(desk, node, lease)


def _with_cursors(task: Task, record: NodeRecord | None) -> Task:
    """The cursors as they stand after settling: a commit found in the log has moved them."""
    if record is None or task.strategy is Strategy.FULL:
        return task
    return replace(task, inputs=tuple(replace(i, after=record.cursors.get(i.dataset, i.after)) for i in task.inputs))


def _has_work(desk: Desk, task: Task, inputs: dict[str, Cursor]) -> bool:
    """Whether an input has row changes past the cursor; a task that rebuilds, or looks into files, always has."""
    if task.strategy is Strategy.FULL or task.files or task.release or not task.inputs:
        return not _only_waits(desk, task, inputs)
    return any(i.changes and _changed(desk, i.dataset, i.after, inputs[i.dataset]) for i in task.inputs)


def _was_built(desk: Desk, node: Node, task: Task, record: NodeRecord | None, inputs: dict[str, Cursor]) -> bool:
    """A node that the catalog did not know, and whose table settling found to be up to date with inputs and configuration (L6)."""
    own = desk.pins.find(node.name)
    if task.cause is not Cause.NEW_NODE or task.strategy is not Strategy.FULL or record is None or own is None:
        return False
    if any(_changed(desk, name, record.cursors.get(name), now) for name, now in inputs.items()):
        return False
    if isinstance(node.definition, Job) and node.definition.uses_as_of and record.as_of != desk.as_of.isoformat():
        return False
    if _changed(desk, node.name, Cursor(table_id=record.table_id, version=record.table_version), own):
        return False
    return [c.hash for c in record.configs] == [_written_config(desk, node, inputs).hash]


def _only_waits(desk: Desk, task: Task, inputs: dict[str, Cursor]) -> bool:
    """A full recompute planned because an upstream task might change a `whole` input, and none did."""
    if task.cause != "new_input" or not task.inputs or task.overwrite:
        return False
    return not any(_changed(desk, i.dataset, i.after, inputs[i.dataset]) for i in task.inputs)


def _changed(desk: Desk, dataset: str, after: Cursor | None, now: Cursor) -> bool:
    if after is None or after.table_id != now.table_id:
        return True
    if after.version >= now.version:
        return False
    return any(e.changes_rows for e in read_entries(desk.lake.table(dataset), after.version) if e.version <= now.version)


def _quiet_since(desk: Desk, node: Node, version: int) -> int:
    """The oldest version from which no commit up to `version` changed rows: readers with a cursor there need only what comes next."""
    quiet = version
    for entry in reversed(list(read_entries(desk.lake.table(node.name), max(-1, version - 5)))):
        if entry.version > version:
            continue
        if entry.changes_rows:
            return entry.version
        quiet = entry.version - 1
    return quiet


def _written_config(desk: Desk, node: Node, inputs: dict[str, Cursor]) -> WrittenConfig:
    lookups: dict[str, int] = {}
    for given in node.inputs:
        if isinstance(given.relation, Lookup):
            entries = read_entries(desk.lake.table(given.dataset), -1)
            lookups[given.name] = max(
                (e.version for e in entries if e.changes_rows and e.version <= inputs[given.dataset].version), default=0
            )
    config = with_lookups(node.config, lookups)
    return WrittenConfig(hash=config.hash, parts=config.parts)


def _bytes(desk: Desk, node: Node) -> int:
    table = open_table(desk.lake.table(node.name))
    return sum(table.get_add_actions(flatten=True).column("size_bytes").to_pylist()) if table else 0


def give_back(desk: Desk, node: Node, lease: Lease, error: BaseException) -> None:
    """After a failure the lease is released only if nothing was left half done: whoever takes an unreleased one fences and settles."""
    if isinstance(error, StrandlineError) and error.slug == SPARK_LOST:
        return  # it may be writing still
    try:
        own = desk.pins.find(node.name)
        if find_commit(desk, node, lease, own.version if own else -1) is None:
            release_lease(desk.catalog, lease)
    except (StrandlineError, OSError):
        pass  # lost already, or out of reach; the error that brought us here is the one to tell
