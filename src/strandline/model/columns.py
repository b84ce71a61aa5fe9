"""Columns and their types, and the metadata columns that are stored beside a row."""

import re
from dataclasses import dataclass
from enum import StrEnum


class TypeName(StrEnum):
    STRING = "string"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_MS = "timestamp_ms"
    TIMESTAMP_US = "timestamp_us"
    TIMESTAMP_NS = "timestamp_ns"
    JSON = "json"


class TimeUnit(StrEnum):
    """The unit in which a dataset counts when its facts happened."""

    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


_UNITS = {
    TypeName.TIMESTAMP_MS: TimeUnit.MILLISECONDS,
    TypeName.TIMESTAMP_US: TimeUnit.MICROSECONDS,
    TypeName.TIMESTAMP_NS: TimeUnit.NANOSECONDS,
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A declared type.

    `timestamp_ms`, `timestamp_us` and `timestamp_ns` define how the payload writes an instant: as an integer.
    """

    name: TypeName
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name is TypeName.DECIMAL else str(self.name)

    @property
    def stored(self) -> str:
        """The type of the column in the Delta table, as Spark spells it."""
        match self.name:
            case TypeName.TIMESTAMP_MS | TypeName.TIMESTAMP_US | TypeName.TIMESTAMP_NS:
                return "timestamp"
            case TypeName.JSON:
                return "string"
            case _:
                return str(self)

    @property
    def is_integer_time(self) -> bool:
        """The payload writes an instant as an integer."""
        return self.name in _UNITS

    @property
    def unit(self) -> TimeUnit:
        """The unit of times of this type. Text and dates count in microseconds, as instants are stored."""
        return _UNITS.get(self.name, TimeUnit.MICROSECONDS)


STRING = ColumnType(name=TypeName.STRING)


def find_type(text: str) -> ColumnType | None:
    """The type that a declaration names. None if there is no such type."""
    spelling = text.strip().lower()
    if decimal := _DECIMAL.fullmatch(spelling):
        precision, scale = int(decimal[1]), int(decimal[2])
        return (
            ColumnType(name=TypeName.DECIMAL, precision=precision, scale=scale)
            if scale <= precision <= 38 and precision > 0
            else None
        )
    if spelling in set(TypeName) - {TypeName.DECIMAL}:
        return ColumnType(name=TypeName(spelling))
    return None


SOURCE_AT = "_source_at"
SOURCE_TS = "_source_ts"
INGESTED_AT = "_ingested_at"
POSITION = "_source_position"
PAYLOAD = "_payload"
KEY = "_key"
DELETED = "_deleted"
CONFIG = "_config"

STATE = "_state"
HEAD = "_head"
ROLE = "_role"


class Role(StrEnum):
    """What a row is in a table that contains more than what its readers see (ADR 14)."""

    ROW = "row"
    """A published row, the only one that is not `_deleted`."""
    HEAD = "head"
    """What is known about a key."""
    EPOCH = "epoch"
    """A row as it was before it was replaced or removed."""


PARTITIONED_BY = (DELETED, ROLE)
"""The partition columns of such a table. Its log has their values; the files need not contain them."""

METADATA_COLUMNS = (
    SOURCE_AT,
    SOURCE_TS,
    INGESTED_AT,
    POSITION,
    PAYLOAD,
    KEY,
    DELETED,
    CONFIG,
    STATE,
    HEAD,
    ROLE,
)
"""The complete list. A source's or job's column with one of these names is an error.

Any other `_name` is ordinary.
"""

_NOT_IN_A_COLUMN = frozenset("` ,;{}()\n\t=.")
"""Delta refuses most of these in a column's name. A dot or a backtick would break SQL."""


def is_column_name(name: str) -> bool:
    """Whether a column may have the name. Names that begin with `__` belong to the engine."""
    return bool(name) and not set(name) & _NOT_IN_A_COLUMN and not name.startswith("__")


RESERVED_PREFIX = "__strandline_"
"""The prefix of columns that the engine adds to a row temporarily.

A column of a file may not begin with it.
"""
_NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f ,;{}()=`]")
"""Characters that Delta refuses in the name of a column, or that would break SQL."""


def native_name(name: str) -> str:
    """The name under which a source's table stores a column of its files.

    It is in lower case, and `_` replaces every character that a name may not contain. The name of a metadata
    column gets one more underscore. A name that begins with two underscores is kept; facts must rename such a
    column.
    """
    cleaned = _NOT_IN_A_NAME.sub("_", name.strip().lower())
    return f"_{cleaned}" if cleaned in METADATA_COLUMNS else cleaned


RESERVED_SUFFIXES = ("_facts", "_quarantine", "_state", "_epochs", "_changes")


def quote(identifier: str) -> str:
    """An identifier in backticks, which is safe in Spark SQL. All such identifiers are quoted here."""
    return "`" + identifier.replace("`", "``") + "`"


LAST_PLACE = (1 << 62) - 1
"""The place of deleting facts that an empty export implies: after every row of the export that it empties."""
