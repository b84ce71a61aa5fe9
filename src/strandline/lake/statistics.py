"""What a table's log says about the values of columns in its files.

delta-rs does not give the statistics of a table that says of which columns it keeps them, so they are taken
from the entries of the log.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from strandline.model.columns import quote

KEPT_OF = "delta.dataSkippingStatsColumns"
"""The property of a table that names the columns of which new files get statistics."""
End = str | int | float
"""A least or greatest value as JSON has it. Times and dates are texts that sort as they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """The statistics of a file. Its deletion vector may hide rows, so they may be too wide, never too narrow.

    Columns have the names that the files have. A column in neither field is unknown.
    """

    ranges: tuple[tuple[str, End, End], ...] = ()
    """(column, least value, greatest value). Delta cuts times to milliseconds, and long texts."""
    empty: tuple[str, ...] = ()
    """The columns that are NULL in every row."""

    def find_range(self, column: str) -> tuple[End, End] | None:
        return next(((low, high) for name, low, high in self.ranges if name == column), None)

    def knows(self, column: str) -> bool:
        return column in self.empty or self.find_range(column) is not None


NOTHING_KNOWN = FileStatistics()


def make_statistics(stats: Mapping[str, Any]) -> FileStatistics:
    """The statistics of a file from the JSON in its entry of the log."""
    least, greatest = stats.get("minValues") or {}, stats.get("maxValues") or {}
    rows, nulls = stats.get("numRecords"), stats.get("nullCount") or {}
    ends = ((column, low, greatest.get(column)) for column, low in least.items())
    return FileStatistics(
        ranges=tuple(
            (column, low, high)
            for column, low, high in ends
            if isinstance(low, str | int | float) and isinstance(high, str | int | float)
        ),
        empty=tuple(column for column, count in nulls.items() if rows is not None and count == rows),
    )


_NAME = re.compile(r"`((?:[^`]|``)+)`|([^`,]+)")
_NOT_RANGED = {"boolean", "binary", "struct", "array", "map", "variant"}
"""Types for which Delta refuses to record a file's least and greatest value."""


def spell_columns(columns: Iterable[str]) -> str:
    """The value of the property."""
    return ",".join(map(quote, columns))


def read_columns(text: str) -> tuple[str, ...]:
    """The columns that the property names."""
    found = ((quoted.replace("``", "`"), plain.strip()) for quoted, plain in _NAME.findall(text))
    return tuple(quoted or plain for quoted, plain in found if quoted or plain)


def can_be_ranged(type_: str | None) -> bool:
    """Whether files can have statistics of a column of this type. None: there is no such column."""
    return type_ is not None and type_ not in _NOT_RANGED


def find_kept(
    properties: Mapping[str, str], columns: Iterable[tuple[str, str]], wanted: Iterable[str]
) -> tuple[str, ...]:
    """The columns of which a table has to keep statistics. Empty if it keeps those of all that are wanted.

    `columns` are the names and types that the table has. What it has kept so far it goes on keeping.
    """
    types, kept = dict(columns), read_columns(properties.get(KEPT_OF, ""))
    new = [c for c in wanted if c not in kept and can_be_ranged(types.get(c))]
    return (*(c for c in kept if c in types), *new) if new else ()
