"""The range of a column in each file of a table, by the statistics in its log."""

from datetime import date

from strandline.model.own_clock import ColumnRange

from .location import Lake
from .table import get_table


def read_ranges(lake: Lake, dataset: str, version: int, column: str) -> tuple[ColumnRange, ...]:
    """The range of a time column in each live file.

    A file in which the column is always NULL has no statistics of it either.
    """
    files = get_table(lake.table(dataset), version).ranges_by_file(column)
    return tuple(
        ColumnRange(
            low=low if isinstance(low, date) else None,
            high=high if isinstance(high, date) else None,
            rows=rows,
        )
        for low, high, rows in files
    )
