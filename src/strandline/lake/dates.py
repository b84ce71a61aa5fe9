"""The dates in a small table, read without Spark."""

from datetime import date

from strandline.model.columns import DELETED

from .location import Lake
from .table import get_table


def read_dates(lake: Lake, dataset: str, version: int, column: str) -> tuple[date, ...]:
    """The dates in a column of a table's live rows, ascending."""
    table = get_table(lake.table(dataset), version)
    name = '"' + column.replace('"', '""') + '"'
    live = f"WHERE NOT {DELETED}" if DELETED in table.schema_json else ""
    rows = table.ask(f"SELECT DISTINCT {name} AS d FROM t {live}")
    return tuple(sorted(day for day in rows.column("d").to_pylist() if day is not None))
