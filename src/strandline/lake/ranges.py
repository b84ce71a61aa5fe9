"""The range of a column in each file of a table, by the statistics in its log."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, datetime
from urllib.parse import unquote

from strandline.model.own_clock import ColumnRange

from .checkpoints import find_checkpoint
from .location import Lake
from .log import read_entries
from .statistics import NOTHING_KNOWN, End, FileStatistics
from .table import Table, get_table

_TIMES = {"date", "timestamp", "timestamp_ntz"}
"""The types whose statistics bound the rows. Texts sort in another order than the times that they name."""


def read_ranges(
    lake: Lake, dataset: str, version: int, columns: Collection[str]
) -> dict[str, tuple[ColumnRange, ...]]:
    """By column: its range in each live file.

    A file has no range if its entry tells none: when it was written nobody needed it, or it is no time.
    """
    table = get_table(lake.table(dataset), version)
    statistics = find_statistics(table)
    stored, types, rows_by_path = find_stored_names(table), dict(table.columns), table.rows_by_path

    def find(column: str, path: str) -> ColumnRange:
        name, of_file = stored.get(column, column), statistics[path]
        ends = of_file.find_range(name) if types[column] in _TIMES else None
        return _make_range(ends, rows_by_path[path], empty=name in of_file.empty)

    return {
        column: tuple(find(column, path) for path in rows_by_path) for column in columns if column in types
    }


def find_statistics(table: Table) -> dict[str, FileStatistics]:
    """By path of each live file: its statistics."""
    checkpoint = find_checkpoint(table.uri, table.version)
    known: dict[str, FileStatistics] = {}
    if checkpoint is not None:
        known = {unquote(path): of_file for path, of_file in checkpoint.statistics.items()}
    for entry in read_entries(table.uri, checkpoint.version if checkpoint else -1):
        known |= entry.statistics
    return {path: known.get(path, NOTHING_KNOWN) for path in table.paths}


def find_stored_names(table: Table) -> Mapping[str, str]:
    """By column: its name in files and statistics. It differs from the column's own once that was changed."""
    fields = json.loads(table.schema_json)["fields"]
    return {
        field["name"]: field.get("metadata", {}).get("delta.columnMapping.physicalName", field["name"])
        for field in fields
    }


def _make_range(ends: tuple[End, End] | None, rows: int, *, empty: bool) -> ColumnRange:
    unknown = ColumnRange(low=None, high=None, rows=rows, empty=empty)
    if ends is None:
        return unknown
    try:
        low, high = (_parse(str(end)) for end in ends)
    except ValueError:
        return unknown
    return replace(unknown, low=low, high=high)


def _parse(text: str) -> datetime | date:
    return date.fromisoformat(text) if len(text) == len("2024-01-13") else datetime.fromisoformat(text)
