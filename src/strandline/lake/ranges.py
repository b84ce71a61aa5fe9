"""The range of a column in each file of a table, by the statistics in its log.

delta-rs does not give the statistics of a table that says of which columns it keeps them, so the entries of
the log are read.
"""

from datetime import date, datetime

from strandline.model.own_clock import ColumnRange

from .location import Lake
from .log import read_entries
from .table import get_table


def read_ranges(lake: Lake, dataset: str, version: int, column: str) -> tuple[ColumnRange, ...]:
    """The range of a time column in each live file.

    A file whose entry is no longer in the log, or in which the column is always NULL, has no range. Nor has a
    text: texts and the times that they spell are in different orders.
    """
    uri = lake.table(dataset)
    table = get_table(uri, version)
    if dict(table.columns).get(column) not in _TIMES:
        return tuple(_make_range(None, rows) for rows in table.rows_by_path.values())
    known = {
        file.path: (low, high)
        for entry in read_entries(uri, -1)
        for file in entry.added
        for name, low, high in file.ranges
        if name == column
    }
    return tuple(_make_range(known.get(path), rows) for path, rows in table.rows_by_path.items())


_TIMES = ("timestamp", "timestamp_ntz", "date")


def _make_range(ends: tuple[str, str] | None, rows: int) -> ColumnRange:
    if ends is None:
        return ColumnRange(low=None, high=None, rows=rows)
    try:
        low, high = (_parse(end) for end in ends)
    except ValueError:
        return ColumnRange(low=None, high=None, rows=rows)
    return ColumnRange(low=low, high=high, rows=rows)


def _parse(text: str) -> datetime | date:
    return date.fromisoformat(text) if len(text) == len("2024-01-13") else datetime.fromisoformat(text)
