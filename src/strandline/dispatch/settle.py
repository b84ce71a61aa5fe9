"""Settling: every commit of ours in a table's log that the catalog has missed is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.catalog import find_node, record_commit
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.table import open_table
from strandline.model.commits import find_foreign
from strandline.model.leases import Lease
from strandline.model.node import Node
from strandline.model.plan import Cursor

from .desk import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a table's log held past what the catalog knew."""

    found: int
    """Commits of ours that changed rows; they are recorded now."""
    foreign: tuple[int, ...]
    """Versions that someone else wrote and that no later commit of ours wrote over."""


def settle(desk: Desk, node: Node, lease: Lease) -> Settled:
    """Record every commit of ours in the table's log that the catalog has missed, and pin the table as it is.

    Nothing after rows that someone else wrote is recorded: the planner has to see them until the table was
    rebuilt (L13).
    """
    record, own = find_node(desk.catalog, node.name), desk.pins.find(node.name)
    uri = desk.lake.table(node.name)
    versions = list_versions(uri)
    if not versions:
        return Settled(found=0, foreign=())
    if (
        record
        and own
        and record.table_id == own.table_id
        and record.table_version == own.version == versions[-1]
    ):
        return Settled(found=0, foreign=())
    table = open_table(uri)
    assert table is not None
    table_id = table.id
    known = record.table_version if record and record.table_id == table_id else -1
    entries = list(read_entries(uri, known))
    foreign = foreign_versions(entries)
    known_good = [e for e in entries if not (foreign and node.inputs) or e.version < foreign[0]]
    missed = [r for e in known_good if (r := e.record(table_id)) is not None]
    rows = next(
        (r.metadata.rows for r in reversed(missed) if r.metadata.rows >= 0), record.row_count if record else 0
    )
    if missed:
        record_commit(
            desk.catalog,
            lease,
            tuple(missed),
            kind=node.kind,
            recount=node.traits.recount,
            location=uri,
            row_count=rows,
            bytes_=count_bytes(desk, node),
            release=False,
            readers=jobs_reading(desk, node),
        )
    if foreign:
        rows = table.live_rows  # what the catalog has is not of these rows
    desk.pins.move(
        node.name,
        Cursor(table_id=table_id, version=max(e.version for e in entries) if entries else versions[-1]),
        rows,
    )
    return Settled(found=sum(1 for r in missed if r.metadata.operation.changes_rows), foreign=foreign)


def foreign_versions(entries: Sequence[LogEntry]) -> tuple[int, ...]:
    """The versions that someone else wrote."""
    return tuple(c.version for c in find_foreign([e.summary() for e in entries]))


def find_ours(desk: Desk, lease: Lease, entries: Sequence[LogEntry]) -> LogEntry | None:
    """Our commit in the log, by task id."""
    wanted = task_id(desk, lease)
    return next((e for e in entries if e.metadata and e.metadata.task == wanted), None)


def task_id(desk: Desk, lease: Lease) -> str:
    """Unique per attempt: the token grows with each."""
    return f"{desk.run}/{lease.dataset}/{lease.token}"


def jobs_reading(desk: Desk, node: Node) -> tuple[str, ...]:
    """The jobs that an invalidation of this dataset concerns."""
    return tuple(n.name for n in desk.project.readers_of(node.name) if n.traits.answers_invalidations)


def count_bytes(desk: Desk, node: Node) -> int:
    table = open_table(desk.lake.table(node.name))
    return table.bytes if table else 0
