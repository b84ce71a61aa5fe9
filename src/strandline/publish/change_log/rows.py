"""Net changes -> rows of the change log: the key's text, and rows as JSON. Plain Python, batch by batch."""

from collections import Counter
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

from .handed_on import NetChange
from .netting import FIELDS, NEW_ROW, OLD_ROW, OPERATION, TIME, VERSION

Row = dict[str, Any]
LOG_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("position", pa.int64()),
        ("operation", pa.string()),
        ("key", pa.string()),
        ("source_timestamp", pa.int64()),
        ("fields", pa.list_(pa.string())),
        ("data", pa.string()),
        ("before", pa.string()),
        ("published_at", pa.timestamp("us", tz="UTC")),
    ]
)
_HELD = 10_000
"""So many rows are held until all are known, and placed here. More are written as they come."""


class LogFile:
    """The rows of one append, in one file. If they are few, with their positions."""

    def __init__(self, uri: str, published_at: datetime) -> None:
        file_system, path = open_folder(uri)
        file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._writer = pq.ParquetWriter(path, LOG_SCHEMA, filesystem=file_system)
        self._published_at = published_at
        self._held: list[Row] | None = []
        self.rows = 0

    @property
    def placed(self) -> bool:
        """Whether the rows have their positions. Otherwise those of a version are not all known here."""
        return self._held is not None

    def close(self) -> None:
        if self._held is not None:
            self._write(_place(self._held))
        self._writer.close()

    def add_reset(self, version: int) -> None:
        self._add([{"version": version, "operation": str(Change.RESET)}])

    def add_changes(self, staged: Staged, key: Sequence[str]) -> None:
        for batch in staged.scan([VERSION, OPERATION, TIME, FIELDS, NEW_ROW, OLD_ROW]):
            self._add(list(_make_rows(batch, key)))

    def add_few(self, changes: Sequence[NetChange], key: Sequence[str]) -> None:
        self._add(
            [
                _make_row(c.version, c.operation, c.source_timestamp, c.fields, c.new, c.old, key)
                for c in changes
            ]
        )

    def _add(self, rows: list[Row]) -> None:
        self.rows += len(rows)
        if self._held is not None and self.rows <= _HELD:
            self._held += rows
            return
        if self._held:
            self._write(self._held)
        self._held = None
        self._write(rows)

    def _write(self, rows: Sequence[Row]) -> None:
        nothing = dict.fromkeys(LOG_SCHEMA.names)
        shown = [{**nothing, **row, "published_at": self._published_at} for row in rows]
        self._writer.write_table(pa.Table.from_pylist(shown, LOG_SCHEMA))


def _place(rows: Sequence[Row]) -> list[Row]:
    """The rows with their place among the changes of their version, by the text of their key."""
    in_order = sorted(rows, key=lambda row: (row["version"], row.get("key") or ""))
    places: Counter[int] = Counter()
    placed = []
    for row in in_order:
        placed.append({**row, "position": places[row["version"]]})
        places[row["version"]] += 1
    return placed


def _make_rows(batch: pa.Table, key: Sequence[str]) -> Iterator[Row]:
    heads = zip(*(batch.column(name).to_pylist() for name in (VERSION, OPERATION, TIME, FIELDS)), strict=True)
    sides = zip(_read_rows(batch, NEW_ROW), _read_rows(batch, OLD_ROW), strict=True)
    for (version, operation, time, fields), (new, old) in zip(heads, sides, strict=True):
        yield _make_row(version, operation, time, fields, new, old, key)


def _make_row(
    version: int,
    operation: str,
    time: int | None,
    fields: Sequence[str],
    new: Mapping[str, object] | None,
    old: Mapping[str, object] | None,
    key: Sequence[str],
) -> Row:
    row = old if operation == Change.DELETE else new
    assert row is not None
    former = {name: old.get(name) for name in fields} if old is not None else {}  # a new column was NULL
    return {
        "version": version,
        "operation": str(operation),
        "key": key_text(row[column] for column in key),
        "source_timestamp": time,
        "fields": list(fields),
        "data": write_json(row),
        "before": None if operation == Change.INSERT else write_json(former),
    }


def _read_rows(batch: pa.Table, name: str) -> Iterator[Mapping[str, object]]:
    """The rows in a column of structs. A row that is NULL has NULL in every column."""
    rows = batch.column(name).combine_chunks()
    rows = rows if isinstance(rows, pa.ChunkedArray) else pa.chunked_array([rows])
    names = [field.name for field in rows.type]
    columns = [plain_column(column) for column in pa.Table.from_arrays(rows.flatten(), names).columns]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
