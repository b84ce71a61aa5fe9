"""The metadata of commits, and a table's log as the planner sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from .files import FileRead
from .plan import Cursor
from .scope import NOTHING, Scope


class Operation(StrEnum):
    """How one of our commits changed its table."""

    APPEND = "append"
    INSERT_NEW = "insert_new"
    REPLACE_KEYS = "replace_keys"
    REPLACE_PARTITIONS = "replace_partitions"
    OVERWRITE = "overwrite"
    FENCE = "fence"
    PURGE = "purge"
    INVALIDATE = "invalidate"
    """An empty commit that contains invalidations. Readers compute those scopes again."""
    COUNTS = "counts"
    """An empty commit that contains the counts of an increment without facts (L10)."""
    COMPACT = "compact"
    """The same rows in other files: in fewer, without the deleted ones, or sorted."""
    STATISTICS = "statistics"
    """No rows: from now on, new files have statistics of more columns."""
    CLEAN = "clean"
    """An empty commit that records the oldest version whose files are kept."""
    ADOPT = "adopt"
    """An empty commit that accepts what someone else wrote before it as if it were ours."""

    @property
    def is_bare(self) -> bool:
        """Whether it read and computed nothing, so that no row has its configuration or `as_of`."""
        return self in _BARE

    @property
    def changes_rows(self) -> bool:
        """Whether it gives readers of the table work to do."""
        return self not in _QUIET


_BARE = (
    Operation.FENCE,
    Operation.PURGE,
    Operation.INVALIDATE,
    Operation.COMPACT,
    Operation.STATISTICS,
    Operation.CLEAN,
    Operation.ADOPT,
)


_QUIET = (*_BARE, Operation.COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenConfig:
    """A configuration as a commit records it. Its parts let `stale` name what has changed since."""

    hash: str
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPartition:
    """A partition as one commit left it."""

    partition_key: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidation:
    """A record that a scope of a dataset must be processed again, and why.

    It is a commit on that dataset's table.
    """

    id: str
    scope: Scope
    reason: str
    source_event: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """What every output commit contains (L6), as the `userMetadata` of the Delta commit."""

    run: str
    task: str
    """Unique per attempt: `<run>/<node>/<token>`. The confirmation of a commit looks for it in the log."""
    node: str
    token: int
    operation: Operation
    inputs: Mapping[str, Cursor]
    """By input dataset: how far the node has read it once this commit is in the log."""
    scope: Scope
    cause: str
    config: WrittenConfig
    whole: bool
    """True if every row of the output has this configuration after this commit."""
    as_of: str
    counts: Mapping[str, int]
    files: tuple[FileRead, ...] = ()
    rows: int = -1
    """Live rows of the output after this commit. -1 if the commit does not record it."""
    schema_hash: str = ""
    partitions: tuple[BuiltPartition, ...] = ()
    """The partitions that this commit built."""
    waiting: tuple[str, ...] = ()
    """Partitions of the rows read that are not final yet."""
    invalidations: tuple[Invalidation, ...] = ()
    readable_from: int = 0
    """The oldest version from which the table and its changes can be read.

    Files that only earlier versions use are removed.
    """
    adopted: tuple[int, ...] = ()
    """Versions that someone else wrote and that are accepted as they are."""
    reshaped: bool = False
    """The table was replaced, and a column is gone or has another type."""
    onto: int = -1
    """The version of the table for which it was computed, -1 if there was none.

    The commit has a later version.
    """
    published_to: tuple[str, ...] = ()
    """The change logs and triggers that were declared on the dataset when the commit was made.

    What it changed is delivered by those triggers alone.
    """

    @classmethod
    def bare(cls, *, run: str, node: str, token: int, operation: Operation, as_of: str) -> "CommitMetadata":
        """The metadata of a commit that reads nothing and computes nothing."""
        return cls(
            run=run,
            task=f"{run}/{node}/{token}",
            node=node,
            token=token,
            operation=operation,
            inputs={},
            scope=NOTHING,
            cause="",
            config=WrittenConfig(hash="", parts={}),
            whole=False,
            as_of=as_of,
            counts={},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """One of our commits as it is in a table's log."""

    metadata: CommitMetadata
    table_id: str
    version: int
    committed_at: datetime
    bytes_added: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSummary:
    """One entry of a table's log, for the planner."""

    version: int
    changes_rows: bool
    rows_added: int
    bytes_added: int
    metadata: CommitMetadata | None
    """None for a commit that is not ours."""
    operation: str
    committed_at: datetime | None = None

    @property
    def wakes_readers(self) -> bool:
        return self.changes_rows or (self.metadata is not None and bool(self.metadata.invalidations))

    @property
    def foreign(self) -> bool:
        """Not ours, or computed for another table.

        In the second case that table was deleted meanwhile, and this one contains only a part of it.
        """
        return self.changes_rows and (self.metadata is None or self.version <= self.metadata.onto)


def find_foreign(commits: Sequence[CommitSummary]) -> tuple[CommitSummary, ...]:
    """The foreign commits that nobody adopted.

    What one of our overwrites replaced is gone and does not count.
    """
    overwritten = max(
        (c.version for c in commits if c.metadata and c.metadata.operation is Operation.OVERWRITE), default=-1
    )
    adopted = {version for c in commits if c.metadata for version in c.metadata.adopted}
    return tuple(c for c in commits if c.foreign and c.version > overwritten and c.version not in adopted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as it is now."""

    dataset: str
    table_id: str
    version: int
    rows: int
    bytes: int
    commits: tuple[CommitSummary, ...]
    """The commits after the oldest cursor of interest, oldest first."""
    earliest: int = 0
    """The oldest version of which log and files still exist."""
    columns: tuple[tuple[str, str], ...] = ()
    """(name, Spark type) in the table's order."""

    @property
    def readable_from(self) -> int:
        """The oldest version whose files are kept.

        A cursor before it is also before the commit that records it, so that commit is among `commits`.
        """
        return max((c.metadata.readable_from for c in self.commits if c.metadata), default=0)

    def commits_after(self, version: int) -> tuple[CommitSummary, ...]:
        return tuple(c for c in self.commits if c.version > version)
