"""The frame of the commit protocol: take a lease, fence, settle, write, confirm, record, give back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from strandline.catalog import acquire_lease, next_token, record_commit, release_lease
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.state import read_token
from strandline.lake.table import get_table, open_table
from strandline.model.commits import Operation
from strandline.model.errors import ConflictError, FencedError, StrandlineError, WorkError
from strandline.model.leases import Lease
from strandline.model.node import Node
from strandline.model.plan import Cursor
from strandline.spark.session import SPARK_LOST

from .desk import Desk
from .failpoints import reach
from .settle import count_bytes, find_ours, foreign_versions, jobs_reading, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A commit of ours that stands in the table's log and is not recorded yet."""

    entry: LogEntry
    notes: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Held:
    """A node whose lease this run holds. Its table is fenced and settled, and can be written once."""

    desk: Desk
    node: Node
    lease: Lease
    notes: tuple[str, ...]
    """What taking it found."""
    returned: bool = False
    """The lease was given back."""

    @property
    def version(self) -> int:
        """The version that the table has after settling, -1 when there is no table."""
        own = self.desk.pins.find(self.node.name)
        return own.version if own else -1

    @property
    def rows(self) -> int:
        """The live rows that the table has after settling."""
        return self.desk.pins.rows(self.node.name)

    def write(self, commit: Callable[[], None]) -> Written:
        """Steps 4 and 5: write, then ask the log. The log decides, whatever the call answered.

        Looks at every version between the settled one and ours.
        """
        failed: BaseException | None = None
        reach("before-write", self.node.name)
        try:
            commit()
            reach("after-write", self.node.name)
        except BaseException as error:  # noqa: BLE001 the log is asked first; without our commit in it, it is raised
            failed = error
        reach("before-confirm", self.node.name)
        entries = list(read_entries(self.desk.lake.table(self.node.name), self.version))
        entry = find_ours(self.desk, self.lease, entries)
        reach("after-confirm", self.node.name)
        if entry is None:
            self._require_same_table()
            if failed is not None:
                raise failed
            raise FencedError(
                f"The commit of `{self.node.name}` with token {self.lease.token} was refused by its table: "
                "a newer writer was there.",
                remedy="Nothing was changed. It is tried again; if that fails too, run again.",
            )
        self._refuse_foreign([e for e in entries if e.version <= entry.version])
        lost = f"its commit stands, although the answer was lost: {failed}"
        return Written(entry=entry, notes=(lost,) if failed else ())

    def _refuse_foreign(self, entries: list[LogEntry]) -> None:
        """Ours stands, but was computed without rows that someone else wrote meanwhile.

        It is not recorded and the lease is not returned, so the next run finds it, and those rows.
        """
        foreign = foreign_versions(entries)
        if foreign and self.node.inputs:
            versions = ", ".join(map(str, foreign))
            raise ConflictError(
                f"Someone else wrote version {versions} of `{self.node.name}` "
                "while this task was writing it.",
                remedy=f"Run again: it is shown in the plan, and `{self.node.name}` is rebuilt.",
                slug="foreign-commit",
            )

    def _require_same_table(self) -> None:
        """Refuse to try again when the table was deleted meanwhile.

        Our write may have made it again of a part of its rows. It has to be rebuilt.
        """
        pinned, table = self.desk.pins.find(self.node.name), open_table(self.desk.lake.table(self.node.name))
        if pinned is not None and (table is None or table.id != pinned.table_id):
            raise WorkError(
                f"The table of `{self.node.name}` was deleted while this task was writing it.",
                remedy=f"Run again: it is shown in the plan, and `{self.node.name}` is rebuilt."
                if self.node.inputs
                else "Run `strandline doctor`: it says how what was received comes back.",
                slug="table-replaced",
            )

    def record(self, written: Written, rows: int) -> Cursor:
        """Step 6: one catalog transaction checks the token, moves cursors and counts, releases the lease."""
        desk, node = self.desk, self.node
        uri = desk.lake.table(node.name)
        known = desk.pins.find(node.name)
        table_id = known.table_id if known else get_table(uri).id
        record = written.entry.record(table_id)
        assert record is not None
        reach("before-record", node.name)
        record_commit(
            desk.catalog,
            self.lease,
            (record,),
            kind=node.kind,
            recount=node.traits.recount,
            location=uri,
            row_count=rows,
            bytes_=count_bytes(desk, node),
            release=True,
            readers=jobs_reading(desk, node),
        )
        self.returned = True
        reach("after-record", node.name)
        cursor = Cursor(table_id=table_id, version=written.entry.version)
        desk.pins.move(node.name, cursor, rows)
        return cursor

    def give_back(self, error: BaseException) -> None:
        """After a failure, release the lease only if nothing was left half done.

        Whoever takes an unreleased lease fences and settles.
        """
        if self.returned or (isinstance(error, StrandlineError) and error.slug == SPARK_LOST):
            return  # Spark may still be writing
        try:
            entries = list(read_entries(self.desk.lake.table(self.node.name), self.version))
            if find_ours(self.desk, self.lease, entries) is None:
                release_lease(self.desk.catalog, self.lease)
        except (StrandlineError, OSError):
            pass  # lost already, or out of reach; the error that brought us here is the one to report


@contextmanager
def holding(desk: Desk, node: Node, *, rebuilds: bool = False) -> Iterator[Held]:
    """Hold a node for one write. The lease is given back when the block ends, however it ends.

    `rebuilds`: the block replaces or compares the whole table. So rows that someone else wrote are allowed.
    """
    held = _take(desk, node, rebuilds=rebuilds)
    try:
        yield held
        if not held.returned:
            release_lease(desk.catalog, held.lease)
    except BaseException as error:
        held.give_back(error)
        raise


def _take(desk: Desk, node: Node, *, rebuilds: bool) -> Held:
    """Steps 1 and 2: the lease, and after an unclean end the fence.

    Then every commit of ours that the catalog has missed is recorded.
    """
    reach("before-lease", node.name)
    seconds = desk.project.settings.lease_seconds
    # On a lake with one writer we hold the JVM's lock: whoever held the lease is gone.
    token = read_token(desk.lake, node.name)
    lease = acquire_lease(desk.catalog, node.name, desk.holder, seconds, token, desk.lake.one_writer)
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
    lease = next_token(desk.catalog, lease) if lease.must_fence else lease
    return Held(desk=desk, node=node, lease=lease, notes=notes)


def _fence(desk: Desk, node: Node, lease: Lease) -> None:
    """An empty commit with our token: no smaller one can commit after it (L7)."""
    desk.workers().commit_nothing(desk, node, lease, Operation.FENCE)
