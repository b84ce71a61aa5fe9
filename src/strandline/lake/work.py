"""What a worker (`ingest`, `compute`) gets and what it returns.

It gets one attempt with everything pinned, and returns a write that is ready.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.model.catalog_records import PartitionVersion
from strandline.model.columns import DELETED, ROLE, Role
from strandline.model.commits import BuiltPartition, Invalidation, Operation, WrittenConfig
from strandline.model.definitions import ColumnWork
from strandline.model.errors import StrandlineError
from strandline.model.files import FileRead
from strandline.model.node import Node, Project
from strandline.model.plan import Cursor, Task
from strandline.model.scope import Scope

from .location import Lake
from .log import LogEntry, read_entries
from .near import ANYWHERE, Among, Near
from .reads import SIGN, read_added, read_feed, read_table
from .small import SmallTables, spark_schema
from .staging import Staged
from .table import get_table
from .writes import Superseding, Within

SIDE = "__side"
NEW, OLD, GONE = "new", "old", "gone"
"""Rows as they will be, rows as they are, and the only `_deleted` row of a key that vanishes."""


ErrorNamer = Callable[[Exception], StrandlineError | None]
"""An error that names the user's expression that Spark failed in. None if it is about something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that is ready. `operation` says which primitive commits it."""

    operation: Operation
    rows: DataFrame | None = None
    received: bool = False
    """A source's table: append-only for ever (L1)."""
    within: Within | None = None
    """For a replace: the range in which the rows of the hashes are, if it is known."""
    replaced: tuple[int, ...] = ()
    """For a replace: the hashes whose rows are replaced, including those left without rows.

    Empty if they are many and each has a row.
    """
    superseding: Superseding | None = None
    """For a replace: each row names the published row that it takes the place of, and others stay."""
    name_error: ErrorNamer | None = None
    """For rows that are computed while they are written: what to report in place of an error of Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The outcome of a computation, not yet committed.

    `write` None: nothing differs, and the cursor moves in the catalog alone.
    """

    write: Write | None
    scope: Scope
    """The part of the output that was computed."""
    rows_read: int = 0
    rows_written: int = 0
    rows_full: int = 0
    live_rows: int = 0
    """Live rows of the output once this is committed."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Recorded with the commit, and added up from commit to commit."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """Of this task alone."""
    whole: bool = False
    files: tuple[FileRead, ...] = ()
    posts: tuple[str, ...] = ()
    """Files of the inbox that are put away once this is recorded."""
    notes: tuple[str, ...] = ()
    partitions: tuple[BuiltPartition, ...] = ()
    waiting: tuple[str, ...] = ()
    batches: int = 1
    """0 if nothing was computed and the write only says what is left to do."""
    invalidations: tuple[Invalidation, ...] = ()
    changes: Staged | None = None
    """Rows that leave and come by this write, with their sign, for readers in the same run."""
    tombstones: int = 0
    """`_deleted` rows that this write leaves to be purged."""
    refused: StrandlineError | None = None
    """Why a part of a source (some of its files) was left out.

    The rest is committed, and its readers go on.
    """
    reshaped: bool = False
    """The write replaces the table, and a column of it disappears or gets another type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a full recompute gives, and what it is compared with."""

    rows: DataFrame | None
    """None if nothing can be recomputed: what was received is only checked for rows that came twice."""
    published: DataFrame
    sampled_by: Sequence[str]
    """The columns by which a sample is drawn."""
    unique_key: Sequence[str] = ()
    """Set if published rows stay although the recompute no longer gives them.

    Then only these columns are compared.
    """
    keys: Mapping[str, int] | None = None
    """Of a timeline's output: the number of its keys by status, those that were not compared included."""


class Worker(Protocol):
    """One kind of node: what a task writes, and what that must be equal to.

    Each kind's `worker` module is one.
    """

    def prepare(self, work: "Work") -> Prepared:
        """Compute what a task will write."""
        ...

    def expect(self, work: "Work") -> Expected:
        """Recompute everything, without the code that `prepare` uses to choose, restrict or look up (L2)."""
        ...


@dataclass(slots=True)
class Shared:
    """What tasks of one run hand on to each other, so that nothing is computed twice."""

    small: SmallTables
    _changes: dict[str, tuple[int, Staged]] = field(default_factory=dict)
    _decoded: dict[tuple[str, int, int], Staged] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def hand_on(self, dataset: str, upto: int, staged: Staged) -> None:
        """Keep the rows that the commit `upto` changed."""
        if staged.counts["new_rows"] + staged.counts["old_rows"] > self.small.thresholds.handed_on_rows:
            return  # readers take them from Delta's change feed
        with self._lock:
            self._changes[dataset] = (upto, staged)

    def find_changes(self, dataset: str, after: int, upto: int) -> Staged | None:
        """What changed after one version up to another, if one commit of this run changed all of it."""
        with self._lock:
            version, staged = self._changes.get(dataset, (-1, None))
        if staged is None or not after < version == upto:
            return None
        earlier = [e for e in read_entries(self.small.lake.table(dataset), after) if e.version < version]
        all_known = len(earlier) == version - after - 1
        return staged if all_known and not any(e.changes_rows for e in earlier) else None

    def keep_decoded(self, dataset: str, after: int, upto: int, staged: Staged) -> None:
        with self._lock:
            self._decoded[dataset, after, upto] = staged

    def find_decoded(self, dataset: str, after: int, upto: int) -> Staged | None:
        with self._lock:
            return self._decoded.get((dataset, after, upto))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One attempt: a task with everything pinned."""

    project: Project
    node: Node
    task: Task
    session: SparkSession
    lake: Lake
    run: str
    as_of: datetime
    as_of_before: datetime | None
    """The `as_of` of the output as it is. None before its first commit."""
    now: datetime
    """The wall clock, only for `_ingested_at`. Computations use `as_of` (L11)."""
    inputs: Mapping[str, Cursor]
    """By input dataset: the version that this attempt reads."""
    own_version: int | None
    """The output's own version; None before its first commit."""
    live_rows: int
    """Live rows of the output before this attempt."""
    input_rows: Mapping[str, int]
    """Live rows of each input, as recorded."""
    files: Mapping[str, FileRead]
    """By path: how far each file of a source has been read."""
    partitions: Mapping[str, PartitionVersion]
    """The partitions of the output that have been built."""
    waiting: tuple[str, ...]
    """Partitions of what was read before that were not final then."""
    config: WrittenConfig
    columns: ColumnWork | None = None
    """What the task does with each column of the output. None unless columns have a definition each."""
    stale: bool
    """Whether the output has rows of another configuration."""
    accept_guard: bool
    counts: Mapping[str, int]
    """The sums of the counts of all commits of the output."""
    shared: Shared
    attempt: str
    scratch: str
    """The run's own folder, for what is computed before it is committed."""
    quiet: bool = False
    """Events are recorded, and nobody is told about them."""
    _known: dict[tuple[str, int], DataFrame] = field(default_factory=dict, repr=False, compare=False)
    """Tables at a version that this attempt has opened. To open one takes Spark a look into its log."""

    @property
    def staging(self) -> str:
        return f"{self.scratch}/{self.attempt}"

    def version(self, dataset: str) -> int:
        return self.inputs[dataset].version

    def read(self, dataset: str, version: int) -> DataFrame:
        """A table exactly as it was at a version, with metadata columns and deleted rows."""
        known = self._known.get((dataset, version))
        if known is None:
            known = self.shared.small.find(self.session, dataset, version)
            if known is None:
                known = read_table(self.session, self.lake, dataset, version)
            self._known[dataset, version] = known
        return known

    def read_all(self, dataset: str) -> DataFrame:
        """An input at its pinned version, with deleted rows."""
        return self.read(dataset, self.version(dataset))

    def read_live(self, dataset: str) -> DataFrame:
        """What a reader sees of an input at its pinned version, with metadata columns.

        For facts, every one.
        """
        return self._live(dataset, self.read_all(dataset))

    def _live(self, dataset: str, rows: DataFrame) -> DataFrame:
        return (
            rows
            if self.project.get(dataset).traits.only_grows or DELETED not in rows.columns
            else rows.where(~F.col(DELETED))
        )

    def find_live(self, dataset: str, column: str, condition: str) -> DataFrame | None:
        """What a reader sees of an input under a condition on a column, if that can be looked up quickly."""
        rows = self.shared.small.find_where(self.session, dataset, self.version(dataset), column, condition)
        return None if rows is None else self._live(dataset, rows)

    def read_among(self, dataset: str, among: Sequence[Among]) -> DataFrame:
        """What a reader sees of an input, restricted to some values of columns."""
        if among:
            condition = " AND ".join(one.ask() for one in among)
            found = self.find_live(dataset, among[0].column, condition)
            if found is not None:
                return found
        rows = self.read_live(dataset)
        return rows.where(" AND ".join(one.spell() for one in among)) if among else rows

    def read_added(self, dataset: str) -> DataFrame:
        """The rows added to an append-only input since the cursor."""
        return read_added(self.session, self.lake, dataset, self.after(dataset), self.version(dataset))

    def read_own(self) -> DataFrame | None:
        """The output's own table, with deleted rows. None before the first commit."""
        return None if self.own_version is None else self.read(self.node.name, self.own_version)

    def find_shape(self) -> DataFrame | None:
        """No rows, with the columns of the output's own table. None before the first commit.

        Spark does not open the table for this, which would take a look into its log.
        """
        if self.own_version is None:
            return None
        table = get_table(self.lake.table(self.node.name), self.own_version)
        return self.session.createDataFrame([], spark_schema(table))

    def read_rows(self, dataset: str, near: Near = ANYWHERE) -> DataFrame:
        """What readers see of an output of a timeline: an input at its pinned version, or the own table.

        Only rows that lie near keys or dates, if those are given.
        """
        return self._read_role(dataset, Role.ROW, near)

    def read_heads(self, dataset: str, hashes: pa.Array | None = None) -> DataFrame:
        """The heads in an output of a timeline, which have one row per key. Their states may be NULL.

        With `hashes` those of some keys, and perhaps others.
        """
        small, version = self.shared.small, self._read_version(dataset)
        if hashes is None:
            few = small.find_heads(self.session, dataset, version)
        else:
            few = small.find_heads_of(self.session, dataset, version, hashes)
        return self._read_role(dataset, Role.HEAD, ANYWHERE) if few is None else few

    def list_failed(self, dataset: str) -> pa.Array | None:
        """The hashes of the heads of keys that failed. None if Spark has to look for them."""
        return self.shared.small.list_failed(dataset, self._read_version(dataset))

    def read_states(self, dataset: str, among: tuple[Among, ...] = ()) -> DataFrame:
        """The same with their states, which are large and which only the fold needs.

        Only those with values of the key among some, if those are given.
        """
        return self._read_role(dataset, Role.HEAD, Near(among=among))

    def _read_role(self, dataset: str, role: Role, near: Near) -> DataFrame:
        version = self._read_version(dataset)
        few = self.shared.small.find_near(self.session, dataset, version, role, near)
        if few is not None:
            return few
        rows = self.read(dataset, version)
        rows = rows.where((F.col(DELETED) == F.lit(role is not Role.ROW)) & (F.col(ROLE) == F.lit(str(role))))
        return rows if near == ANYWHERE else rows.where(near.spell())

    def _read_version(self, dataset: str) -> int:
        """The version of an input, or of the own table, that this attempt reads."""
        if dataset != self.node.name:
            return self.version(dataset)
        assert self.own_version is not None
        return self.own_version

    def after(self, dataset: str) -> int:
        """The cursor's version before this attempt; -1 if nothing was read."""
        planned = next((i for i in self.task.inputs if i.dataset == dataset), None)
        return planned.after.version if planned and planned.after else -1

    def has_changes(self, dataset: str) -> bool:
        """Whether rows of an input changed since the cursor."""
        return any(e.changes_rows for e in self._entries(dataset))

    def invalidations(self, dataset: str) -> tuple[Invalidation, ...]:
        """The invalidations of an input since the cursor.

        Those on a commit that changed rows are left out: the changed rows are processed anyway.
        """
        return tuple(
            i
            for e in self._entries(dataset)
            if e.metadata and not e.changes_rows
            for i in e.metadata.invalidations
        )

    def _entries(self, dataset: str) -> list[LogEntry]:
        return [
            e
            for e in read_entries(self.lake.table(dataset), self.after(dataset))
            if e.version <= self.version(dataset)
        ]

    def read_changes(self, dataset: str) -> DataFrame:
        """Live rows of an input that left and came since the cursor: declared columns and a sign."""
        after, upto = self.after(dataset), self.version(dataset)
        if self.project.get(dataset).traits.only_grows:
            return self.read_added(dataset).withColumn(SIGN, F.lit(1))
        if staged := self.find_staged_changes(dataset):
            return read_signed(staged, self.session)
        return read_feed(self.session, self.lake, dataset, after, upto)

    def find_staged_changes(self, dataset: str) -> Staged | None:
        """All rows of an input that changed since the cursor, if one commit of this run changed them."""
        return self.shared.find_changes(dataset, self.after(dataset), self.version(dataset))


def read_signed(staged: Staged, session: SparkSession) -> DataFrame:
    """Staged differences as changes: live rows with +1 where they come and -1 where they leave."""
    rows = staged.read(session).where(~F.col(DELETED))
    return rows.withColumn(SIGN, F.when(F.col(SIDE) == NEW, F.lit(1)).otherwise(F.lit(-1))).drop(SIDE)
