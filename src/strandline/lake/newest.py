"""The newest value of a column, read through delta-rs."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pyarrow as pa

from strandline.model.columns import DELETED
from strandline.model.partitions import encode_group
from strandline.sql.literals import datafusion_name

from .location import Lake
from .table import get_table


def read_newest(
    lake: Lake, dataset: str, version: int, column: str, groups: Sequence[str]
) -> dict[str, object]:
    """The largest value of `column` among the live rows, by group.

    A group is the values of `groups` as they appear in a partition's name.
    """
    table = get_table(lake.table(dataset), version)
    live = f'WHERE NOT "{DELETED}"' if DELETED in table.names else ""
    grouped = ", ".join(f"CAST({datafusion_name(name)} AS VARCHAR)" for name in groups)
    prefix = f"{grouped}, " if grouped else ""
    select = f'SELECT {prefix}max({datafusion_name(column)}) AS "__newest" FROM t {live}'
    answer = table.ask(f"{select} GROUP BY {grouped}" if grouped else select)
    *names, newest_values = answer.columns
    rows = zip(*(column.to_pylist() for column in names), plain_newest(newest_values), strict=True)
    return {encode_group(group): newest for *group, newest in rows if newest is not None}


def plain_newest(column: pa.ChunkedArray) -> list[object]:
    """The values. One beyond the year 9999 stands for the end of time."""
    values: list[object] = []
    for value in column:
        try:
            values.append(value.as_py())
        except (ValueError, OverflowError):
            values.append(date.max if pa.types.is_date(column.type) else datetime.max.replace(tzinfo=UTC))
    return values
