"""Net changes -> rows of the change log: the key's text, and rows as JSON. Plain Python, batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.lake.location import open_folder
from strandline.lake.plain_values import plain_column
from strandline.lake.staging import Staged
from strandline.model.json_values import write_json
from strandline.model.key_text import key_text
from strandline.publish.changes import Change

from .netting import FIELDS, NEW_ROW, OLD_ROW, OPERATION, TIME, VERSION

Row = dict[str, Any]
LOG_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("operation", pa.string()),
        ("key", pa.string()),
        ("source_timestamp", pa.int64()),
        ("fields", pa.list_(pa.string())),
        ("data", pa.string()),
        ("before", pa.string()),
        ("published_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""All columns but the position, which depends on all changes of a version."""


class LogFile:
    """The rows of one append, in one file."""

    def __init__(self, uri: str, published_at: datetime) -> None:
        file_system, path = open_folder(uri)
        file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._writer = pq.ParquetWriter(path, LOG_SCHEMA, filesystem=file_system)
        self._published_at = published_at
        self.rows = 0

    def close(self) -> None:
        self._writer.close()

    def add_reset(self, version: int) -> None:
        self._add([{"version": version, "operation": str(Change.RESET)}])

    def add_changes(self, staged: Staged, key: Sequence[str]) -> None:
        for batch in staged.scan([VERSION, OPERATION, TIME, FIELDS, NEW_ROW, OLD_ROW]):
            self._add(list(_make_rows(batch, key)))

    def _add(self, rows: list[Row]) -> None:
        nothing = dict.fromkeys(LOG_SCHEMA.names)
        shown = [{**nothing, **row, "published_at": self._published_at} for row in rows]
        self._writer.write_table(pa.Table.from_pylist(shown, LOG_SCHEMA))
        self.rows += len(rows)


def _make_rows(batch: pa.Table, key: Sequence[str]) -> Iterator[Row]:
    heads = zip(*(batch.column(name).to_pylist() for name in (VERSION, OPERATION, TIME, FIELDS)), strict=True)
    sides = zip(_read_rows(batch, NEW_ROW), _read_rows(batch, OLD_ROW), strict=True)
    for (version, operation, time, fields), (new, old) in zip(heads, sides, strict=True):
        row = new if operation != Change.DELETE else old
        yield {
            "version": version,
            "operation": operation,
            "key": key_text(row[column] for column in key),
            "source_timestamp": time,
            "fields": fields,
            "data": write_json(row),
            "before": None
            if operation == Change.INSERT
            else write_json({name: old[name] for name in fields if name in old}),
        }


def _read_rows(batch: pa.Table, name: str) -> Iterator[Mapping[str, object]]:
    """The rows in a column of structs. A row that is NULL has NULL in every column."""
    rows = batch.column(name).combine_chunks()
    rows = rows if isinstance(rows, pa.ChunkedArray) else pa.chunked_array([rows])
    names = [field.name for field in rows.type]
    columns = [plain_column(column) for column in pa.Table.from_arrays(rows.flatten(), names).columns]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
