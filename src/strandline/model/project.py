"""What a project declares: settings, sources, fact datasets and jobs, after every check."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from .columns import ColumnType, TimeUnit, TypeName
from .errors import Place
from .kind import NodeKind
from .serving import UNSERVED, ServeSettings
from .thresholds import SHIPPED, Thresholds


class FailOn(StrEnum):
    """What makes a run end with 1 although every task succeeded."""

    NOTHING = "nothing"
    HELD = "held"
    """Something is stale or frozen, and facts or rows wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where things are. Never hashed: moving a project changes no result."""

    lake: str
    catalog: str
    spark_master: str = "local[*]"
    spark_conf: Mapping[str, str]
    workers: int = 2
    lease_seconds: int = 60
    keep: timedelta = timedelta(days=30)
    """`maintain` keeps everything readable for this long."""
    batch_rows: int = 5_000_000
    """Work on more rows of a timeline than this is published in batches."""
    fail_on: FailOn = FailOn.NOTHING
    serve: ServeSettings = UNSERVED
    thresholds: Thresholds = SHIPPED
    """Sizes at which the engine takes another path. Only tests change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The project's rules for days, months and financial years."""

    timezone: str = "UTC"
    year_starts_month: int = 1
    year_starts_day: int = 1


class FileFormat(StrEnum):
    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def holds_messages(self) -> bool:
        """Messages are stored as text in `_payload`. The other formats have columns."""
        return self in (FileFormat.JSONL, FileFormat.JSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """Files that match a glob, relative to the project's folder."""

    kind: ClassVar[NodeKind] = NodeKind("source")
    name: str
    place: Place
    files: str
    format: FileFormat
    complete: bool = False
    offer_rewritten_again: bool = False
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactColumn:
    """A column of a fact dataset: read from a path, or computed by SQL over the payload and earlier columns.

    `path` starts with `item` or `parent` if it belongs to an exploded element.
    """

    name: str
    type: ColumnType | None
    """None only for SQL columns without a declared type and renamed native columns. These keep their type."""
    path: tuple[str, ...] = ()
    sql: str | None = None
    default: object = None
    place: Place


class Children(StrEnum):
    UPSERT = "upsert"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSet:
    """Facts about one key override each other."""

    key: tuple[str, ...]
    order_by: tuple[str, ...]
    deleted: str | None = None
    children: Children = Children.UPSERT
    latest_non_null: tuple[str, ...] = ()
    parent_key: tuple[str, ...] = ()
    """The key columns not taken from `item`; used by `children: replace`."""

    @property
    def scope_key(self) -> tuple[str, ...]:
        """The columns whose hash is `_key`.

        With `children: replace` it is the parent's key: the newest parent replaces all its children together.
        """
        return self.parent_key if self.children is Children.REPLACE else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Stops the snapshot's task if it would delete too many live records.

    Too many are more than `max_deleted_percent` percent and at least `at_least`.
    """

    max_deleted_percent: float = 50.0
    at_least: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTime:
    """When the fact happened, according to the source: a declared column, or a path that only this uses.

    A bigint is a logical clock: a sequence number or a log position, which is no instant.
    """

    column: str | None = None
    path: tuple[str, ...] = ()
    type: ColumnType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDataset:
    """A dataset decoded from a source."""

    kind: ClassVar[NodeKind] = NodeKind("facts")
    name: str
    place: Place
    source: str
    where: str | None = None
    explode: tuple[str, ...] = ()
    """The path of the list. A step that ends in `[]` goes through the elements of a list (`a[]`, `b`)."""
    columns: tuple[FactColumn, ...]
    complete: bool = False
    """Each export of the source is complete: a key that it lacks is deleted."""
    takes_other_columns: bool
    """True for sources with columns of their own. Columns that are not declared are taken as they are."""
    require: tuple[str, ...] = ()
    record_set: RecordSet | None = None
    identity: tuple[str, ...] = ()
    source_at: SourceTime | None = None
    guard: Guard

    def type_of(self, column: str) -> ColumnType | None:
        """The declared type of a column. None if it keeps the type that it has in the source."""
        return next((c.type for c in self.columns if c.name == column), None)

    @property
    def time_unit(self) -> TimeUnit:
        """The unit of `_source_ts`. A dataset without times, or with a logical clock, counts milliseconds."""
        if self.source_at is None:
            return TimeUnit.MILLISECONDS
        column = self.source_at.column
        kind = self.type_of(column) if column is not None else self.source_at.type
        if kind is None:
            return TimeUnit.MICROSECONDS
        return TimeUnit.MILLISECONDS if kind.name is TypeName.BIGINT else kind.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """The rows of a fact dataset that could not be decoded."""

    kind: ClassVar[NodeKind] = NodeKind("quarantine")
    facts: FactDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The latest row per key of a record set."""

    kind: ClassVar[NodeKind] = NodeKind("snapshot")
    facts: FactDataset


class Head(StrEnum):
    LONGEST = "longest"
    MOST = "most"
    MOST_SUMMED = "most_summed"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRule:
    """The rule that chooses the best head."""

    kind: Head
    column: str = ""

    @property
    def summed(self) -> bool:
        return self.kind is Head.MOST_SUMMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The canonical blocks among all announced blocks."""

    kind: ClassVar[NodeKind] = NodeKind("chain")
    name: str
    place: Place
    blocks: str
    """The event stream of all announced blocks."""
    number: str
    hash: str
    parent: str
    head: HeadRule
    order_by: tuple[str, ...]
    group_by: tuple[str, ...] = ()
    anchor: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.group_by, self.number)


class Mode(StrEnum):
    FULL = "full"
    KEYED = "keyed"
    CURSOR = "cursor"
    PARTITION = "partition"


class Unit(StrEnum):
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """Half-open ranges of a number, or hours, days and months of the project's time zone."""

    column: str
    size: int | None = None
    unit: Unit | None = None
    final_after: int | None = None
    """A partition is built once its end is this far behind the newest value. For times it is in seconds."""
    by: tuple[str, ...] = ()


class Language(StrEnum):
    SQL = "sql"
    PYTHON = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A file of the project that a Python job imports."""

    name: str
    """The name that is imported: `rates`, `lib.rates`."""
    file: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A node that users write."""

    kind: ClassVar[NodeKind] = NodeKind("job")
    name: str
    place: Place
    output: str
    mode: Mode
    key: tuple[str, ...] = ()
    """The columns of its scopes: a keyed job's key, the column of a cursor, the columns of a partition."""
    unique_key: tuple[str, ...] = ()
    """Set if the job appends: rows whose unique key is new are inserted, and nothing is ever deleted."""
    partition: Partitioning | None = None
    language: Language
    code: str
    """The SQL text, or the source text of the Python module."""
    file: str
    """The file of the code, relative to the project's folder."""
    function: str = ""
    modules: tuple[Module, ...] = ()
    """The files of the project that the Python code imports, directly or indirectly."""
    strict_incremental: bool = False
    uses_as_of: bool = False
    config: Mapping[str, object]
    row_key: tuple[str, ...] = ()
    """The key declared under `datasets:`. It is checked at each commit."""
