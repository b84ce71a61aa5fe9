"""The range of a column in each file of a table, by the statistics in its log."""

from datetime import date

from strandline.model.own_clock import ColumnRange

from .location import Lake
from .table import get_table


def read_ranges(lake: Lake, dataset: str, version: int, column: str) -> tuple[ColumnRange | None, ...]:
    """The range of a time column in each live file. None where a file has no statistics of it.

    A file in which the column is always NULL has none either.
    """
    return tuple(
        ColumnRange(low=low, high=high) if isinstance(low, date) and isinstance(high, date) else None
        for low, high in get_table(lake.table(dataset), version).ranges_by_file(column)
    )
