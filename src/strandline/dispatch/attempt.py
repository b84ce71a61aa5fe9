"""One attempt of one task: lease, fence and settle, pin, prepare, write, confirm, record."""

import time
from dataclasses import replace

from strandline.catalog import acquire_lease, next_token, read_view, record_commit, record_unchanged, release_lease
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.state import open_table, read_token
from strandline.model.errors import FencedError, OutsideError
from strandline.model.hashing import with_lookups
from strandline.model.metadata import to_json
from strandline.model.node import Lookup, Node
from strandline.model.plan import Cursor, Status, Strategy, Task, TaskResult
from strandline.model.records import CommitMetadata, CommitRecord, Lease, NodeRecord, WrittenConfig

from .desk import Desk
from .failpoints import reach


def attempt(desk: Desk, task: Task) -> TaskResult:
    """Try a task once. Raises what went wrong; a commit that stands although its answer was lost is found and counts."""
    started = time.monotonic()
    node = desk.project.get(task.node)
    lease, notes = take(desk, node)
    try:
        result = _work(desk, node, task, lease)
    except BaseException:
        _give_back(desk, node, lease)
        raise
    return replace(result, seconds=round(time.monotonic() - started, 3), notes=(*notes, *result.notes))


def take(desk: Desk, node: Node) -> tuple[Lease, tuple[str, ...]]:
    """Steps 1 and 2: the lease, and after an unclean end the fence; then the catalog is told of every commit of ours that it has missed."""
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
    if settled:
        notes = (*notes, f"found {settled} commit(s) of ours that the catalog did not know")
    return (next_token(desk.catalog, lease) if lease.must_fence else lease), notes


def settle(desk: Desk, node: Node, lease: Lease) -> int:
    """Record every commit of ours in the table's log that the catalog has missed. After this there is no "unknown"."""
    record = read_view(desk.catalog).nodes.get(node.name)
    uri = desk.lake.table(node.name)
    versions = list_versions(uri)
    known = record.table_version if record else -1
    if not versions or versions[-1] <= known:
        return 0
    table = open_table(uri)
    assert table is not None
    table_id = str(table.metadata().id)
    if record is not None and record.table_id and record.table_id != table_id:
        known = -1
    found = [r for e in read_entries(uri, known) if (r := e.record(table_id)) is not None]
    if found:
        rows = next((r.metadata.rows for r in reversed(found) if r.metadata.rows >= 0), record.row_count if record else 0)
        record_commit(
            desk.catalog, lease, tuple(found), kind=node.kind, location=uri, row_count=rows, bytes_=_bytes(desk, node), release=False
        )
        desk.pins.move(node.name, Cursor(table_id=table_id, version=versions[-1]), rows)
    return sum(1 for r in found if r.metadata.operation.changes_rows)


def _work(desk: Desk, node: Node, task: Task, lease: Lease) -> TaskResult:
    reach("before-pin", node.name)
    record = read_view(desk.catalog).nodes.get(node.name)
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
    if not _has_work(desk, task, inputs):
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
        scope=replace(task.scope, text=f"{task.scope.text}: {prepared.scope}" if prepared.scope else task.scope.text),
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
    entry = _commit(
        desk, node, lease, before.version if before else -1, lambda: commit_write(desk, prepared.write, lease, to_json(metadata))
    )
    committed = record_entry(desk, node, lease, entry, prepared.live_rows)
    if prepared.changes is not None and before is not None:
        desk.shared.hand_on(node.name, _quiet_since(desk, node, before.version), committed.version, prepared.changes)
    return replace(
        result, status=Status.DONE, rows_written=prepared.rows_written, table_version=committed.version, tombstones=prepared.tombstones
    )


def _commit(desk: Desk, node: Node, lease: Lease, own_version: int, write: "object") -> LogEntry:
    """Write and confirm: what the log says counts, whatever the call said."""
    failed: BaseException | None = None
    reach("before-write", node.name)
    try:
        write()  # type: ignore[operator]
        reach("after-write", node.name)
    except BaseException as error:  # noqa: BLE001 - what the log says counts; raised below if it says nothing
        failed = error
    reach("before-confirm", node.name)
    entry = find_commit(desk, node, lease, own_version)
    reach("after-confirm", node.name)
    if entry is not None:
        return entry
    if failed is not None:
        raise failed
    raise FencedError(
        f"The commit of `{node.name}` with token {lease.token} was refused by its table: a newer writer was there.",
        remedy="Nothing was changed; it is planned afresh.",
    )


def find_commit(desk: Desk, node: Node, lease: Lease, own_version: int) -> LogEntry | None:
    """Our commit in the log, by task id."""
    wanted = task_id(desk, lease)
    return next((e for e in read_entries(desk.lake.table(node.name), own_version) if e.metadata and e.metadata.task == wanted), None)


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


def _give_back(desk: Desk, node: Node, lease: Lease) -> None:
    """After a failure the lease is released only if the log shows that nothing was left half done."""
    try:
        own = desk.pins.find(node.name)
        if find_commit(desk, node, lease, own.version if own else -1) is None:
            release_lease(desk.catalog, lease)
    except (FencedError, OutsideError):
        pass  # lost already, or out of reach: whoever comes next fences
