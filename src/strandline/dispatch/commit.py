"""Writing and recording: the last three steps of the commit protocol, for a task's write and for a purge."""

from collections.abc import Callable

from strandline.catalog import record_commit
from strandline.lake.log import LogEntry, read_entries
from strandline.lake.table import open_table
from strandline.model.commits import CommitRecord
from strandline.model.errors import ConflictError, FencedError, WorkError
from strandline.model.leases import Lease
from strandline.model.node import Node
from strandline.model.plan import Cursor

from .desk import Desk
from .failpoints import reach
from .settle import count_bytes, find_ours, foreign_versions, jobs_reading


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
    entry = find_ours(desk, lease, entries)
    reach("after-confirm", node.name)
    if entry is None:
        _require_same_table(desk, node)
        if failed is not None:
            raise failed
        raise FencedError(
            f"The commit of `{node.name}` with token {lease.token} was refused by its table: a newer writer was there.",
            remedy="Nothing was changed. It is tried again; if that fails too, run again.",
        )
    between = foreign_versions([e for e in entries if e.version <= entry.version])
    if between and node.inputs:
        # Ours stands, computed without those rows. Unrecorded and with the lease unreturned it is found again, and so are they.
        raise ConflictError(
            f"Someone else wrote version {', '.join(map(str, between))} of `{node.name}` while this task was writing it.",
            remedy=f"Run again: it is shown in the plan, and `{node.name}` is rebuilt.",
            slug="foreign-commit",
        )
    return entry, (f"its commit stands, although the answer was lost: {failed}",) if failed else ()


def _require_same_table(desk: Desk, node: Node) -> None:
    """A table that was deleted meanwhile, and that our write then made again of a part of its rows, is not tried again: it is rebuilt."""
    pinned, table = desk.pins.find(node.name), open_table(desk.lake.table(node.name))
    if pinned is not None and (table is None or table.id != pinned.table_id):
        raise WorkError(
            f"The table of `{node.name}` was deleted while this task was writing it.",
            remedy=f"Run again: it is shown in the plan, and `{node.name}` is rebuilt."
            if node.inputs
            else "Run `strandline doctor`: it says how what was received comes back.",
            slug="table-replaced",
        )


def record_entry(desk: Desk, node: Node, lease: Lease, entry: LogEntry, live_rows: int) -> Cursor:
    """Step 6: one catalog transaction checks the token, moves cursors and counts, and releases the lease."""
    uri = desk.lake.table(node.name)
    known = desk.pins.find(node.name)
    if known is not None:
        table_id = known.table_id
    else:
        table = open_table(uri)
        assert table is not None
        table_id = table.id
    record = entry.record(table_id)
    assert isinstance(record, CommitRecord)
    reach("before-record", node.name)
    record_commit(
        desk.catalog,
        lease,
        (record,),
        kind=node.kind,
        recount=node.traits.recount,
        location=uri,
        row_count=live_rows,
        bytes_=count_bytes(desk, node),
        release=True,
        readers=jobs_reading(desk, node),
    )
    reach("after-record", node.name)
    cursor = Cursor(table_id=table_id, version=entry.version)
    desk.pins.move(node.name, cursor, live_rows)
    return cursor
