"""Taking and giving back a table: the lease, the fence after an unclean end, and the catalog told of every commit it has missed."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.catalog import acquire_lease, find_node, next_token, record_commit, release_lease
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.state import read_token
from strandline.lake.table import open_table
from strandline.model.commits import find_foreign
from strandline.model.errors import StrandlineError, WorkError
from strandline.model.leases import Lease
from strandline.model.node import Node
from strandline.model.plan import Cursor
from strandline.spark.session import SPARK_LOST

from .desk import Desk
from .failpoints import reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a table's log held past what the catalog knew."""

    found: int
    """Commits of ours that changed rows; they are recorded now."""
    foreign: tuple[int, ...]
    """Versions that someone else wrote and that no later commit of ours wrote over."""


def take(desk: Desk, node: Node, *, rebuilds: bool) -> tuple[Lease, tuple[str, ...]]:
    """Steps 1 and 2: the lease, and after an unclean end the fence; then the catalog is told of every commit of ours that it has missed.

    `rebuilds`: what follows replaces or compares the whole table, so rows that someone else wrote are dealt with.
    """
    reach("before-lease", node.name)
    seconds = desk.project.settings.lease_seconds
    # On a lake with one writer we hold the JVM's lock: whoever held the lease is gone.
    lease = acquire_lease(
        desk.catalog, node.name, desk.holder, seconds, read_token(desk.lake, node.name), desk.lake.one_writer
    )
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
    found = [r for e in known_good if (r := e.record(table_id)) is not None]
    rows = next(
        (r.metadata.rows for r in reversed(found) if r.metadata.rows >= 0), record.row_count if record else 0
    )
    if found:
        record_commit(
            desk.catalog,
            lease,
            tuple(found),
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
    return Settled(found=sum(1 for r in found if r.metadata.operation.changes_rows), foreign=foreign)


def foreign_versions(entries: Sequence[LogEntry]) -> tuple[int, ...]:
    """The versions that someone else wrote."""
    return tuple(c.version for c in find_foreign([e.summary() for e in entries]))


def _fence(desk: Desk, node: Node, lease: Lease) -> None:
    from .workers import commit_fence

    commit_fence(desk, node, lease)


def give_back(desk: Desk, node: Node, lease: Lease, error: BaseException) -> None:
    """After a failure the lease is released only if nothing was left half done: whoever takes an unreleased one fences and settles."""
    if isinstance(error, StrandlineError) and error.slug == SPARK_LOST:
        return  # it may be writing still
    try:
        own = desk.pins.find(node.name)
        if (
            find_ours(desk, lease, list(read_entries(desk.lake.table(node.name), own.version if own else -1)))
            is None
        ):
            release_lease(desk.catalog, lease)
    except (StrandlineError, OSError):
        pass  # lost already, or out of reach; the error that brought us here is the one to tell


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
