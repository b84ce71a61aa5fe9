"""What a table's log says about the values of columns in its files.

delta-rs does not give the statistics of a table that says of which columns it keeps them, so they are taken
from the entries of the log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
