"""What commits say of themselves, and a table's log as the planner sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from .files import FileRead
from .plan import Cursor
from .scope import NOTHING, Scope


class Operation(StrEnum):
    """How a commit of ours changed its table."""

    APPEND = "append"
    INSERT_NEW = "insert_new"
    REPLACE_KEYS = "replace_keys"
    REPLACE_PARTITIONS = "replace_partitions"
    OVERWRITE = "overwrite"
    FENCE = "fence"
    PURGE = "purge"
    INVALIDATE = "invalidate"
    """An empty commit that carries invalidations: readers compute those scopes again."""
    COUNTS = "counts"
    """An empty commit that carries the counts of an increment without facts (L10)."""
    COMPACT = "compact"
    """The same rows in fewer files, or without the deleted ones."""
    CLEAN = "clean"
    """An empty commit that says from which version on the table's files are kept."""
    ADOPT = "adopt"
    """An empty commit that takes what someone else wrote before it as if it were ours."""

    @property
    def is_bare(self) -> bool:
        """Whether it read nothing and computed nothing, so that no row is of its configuration or `as_of`."""
        return self in _BARE

    @property
    def changes_rows(self) -> bool:
        """Whether a reader has anything to do after it."""
        return self not in _QUIET


_BARE = (
    Operation.FENCE,
    Operation.PURGE,
    Operation.INVALIDATE,
    Operation.COMPACT,
    Operation.CLEAN,
    Operation.ADOPT,
)


_QUIET = (*_BARE, Operation.COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenConfig:
    """A configuration as a commit carries it; the parts let `stale` name what changed since."""

    hash: str
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPartition:
    """A partition as one commit leaves it."""

    partition_key: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidation:
    """A recorded statement that a scope of a dataset must be processed again, and why. It is a commit on that dataset's table."""

    id: str
    scope: Scope
    reason: str
    source_event: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """What every output commit carries (L6), as the `userMetadata` of the Delta commit."""

    run: str
    task: str
    """Unique per attempt: `<run>/<node>/<token>`; confirm looks for it in the log."""
    node: str
    token: int
    operation: Operation
    inputs: Mapping[str, Cursor]
    """By input dataset: how far the node has read it once this commit stands."""
    scope: Scope
    cause: str
    config: WrittenConfig
    whole: bool
    """True when after this commit every row of the output is of this configuration."""
    as_of: str
    counts: Mapping[str, int]
    files: tuple[FileRead, ...] = ()
    rows: int = -1
    """Live rows of the output once this commit stands; -1 where the commit does not say."""
    schema_hash: str = ""
    partitions: tuple[BuiltPartition, ...] = ()
    """The partitions this commit built."""
    waiting: tuple[str, ...] = ()
    """Partitions of what was read that are not final yet."""
    invalidations: tuple[Invalidation, ...] = ()
    readable_from: int = 0
    """From which version on the table and its changes can be read: what only earlier ones were made of is removed."""
    adopted: tuple[int, ...] = ()
    """Versions that someone else wrote and that are taken as they are."""
    reshaped: bool = False
    """The table was replaced, and a column of it is gone or has another type."""
    onto: int = -1
    """The version of the table that it was computed for, -1 where there was none; the commit itself is a later one."""

    @classmethod
    def bare(cls, *, run: str, node: str, token: int, operation: Operation, as_of: str) -> "CommitMetadata":
        """Of a commit that reads nothing and computes nothing."""
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
    """A commit of ours as it stands in a table's log."""

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
        """Not ours, or ours and not in the table it was computed for: that one was deleted meanwhile, and here is a part of it."""
        return self.changes_rows and (self.metadata is None or self.version <= self.metadata.onto)


def find_foreign(commits: Sequence[CommitSummary]) -> tuple[CommitSummary, ...]:
    """The foreign ones that nobody adopted. What an overwrite of ours came after is gone."""
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
    """Those after the oldest cursor asked about, oldest first."""
    earliest: int = 0
    """The oldest version that log and files still reach back to."""
    columns: tuple[tuple[str, str], ...] = ()
    """(name, Spark type) in the table's order."""

    @property
    def readable_from(self) -> int:
        """The oldest version whose files are kept. A cursor before it lies before the commit that says so, which is then among ours."""
        return max((c.metadata.readable_from for c in self.commits if c.metadata), default=0)

    def commits_after(self, version: int) -> tuple[CommitSummary, ...]:
        return tuple(c for c in self.commits if c.version > version)
