"""A published dataset and its change log, as runs leave them. delta-rs writes them: no Spark is needed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from strandline.app.reading import Reading, open_reading
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.json_values import write_json
from strandline.model.key_text import key_text
from strandline.model.metadata import to_json
from strandline.model.plan import Cursor

INSTANT = pa.timestamp("us", "UTC")
PROJECT = """
project: market
sources:
  messages: {files: "data/*.jsonl"}
datasets:
  trades:
    from: messages
    columns:
      trade_id:  {path: id, type: bigint}
      symbol:    symbol
      quantity:  {path: quantity, type: bigint}
      price:     {path: price, type: "decimal(12,4)"}
      weight:    {path: weight, type: double}
      booked_at: {path: booked_at, type: timestamp}
      traded_on: {path: traded_on, type: date}
      checked:   {path: checked, type: boolean}
    record_set: {key: [trade_id], order_by: [_source_position]}
  quotes:
    from: messages
    columns: {symbol: symbol, price: {path: price, type: "decimal(12,4)"}}
    record_set: {key: [symbol], order_by: [_source_position]}
publish: [trades]
"""
COLUMNS = {
    "trade_id": pa.int64(),
    "symbol": pa.string(),
    "quantity": pa.int64(),
    "price": pa.decimal128(12, 4),
    "weight": pa.float64(),
    "booked_at": INSTANT,
    "traded_on": pa.date32(),
    "checked": pa.bool_(),
}
METADATA = {"_source_ts": pa.int64(), "_deleted": pa.bool_(), "_key": pa.int64()}
LOG = pa.schema(
    [
        ("version", pa.int64()),
        ("position", pa.int64()),
        ("operation", pa.string()),
        ("key", pa.string()),
        ("source_timestamp", pa.int64()),
        ("fields", pa.list_(pa.string())),
        ("data", pa.string()),
        ("before", pa.string()),
        ("published_at", INSTANT),
    ]
)
Row = dict[str, Any]


def trade(trade_id: int, **values: object) -> Row:
    """A row of `trades`. Columns that are not named are NULL."""
    return {**dict.fromkeys(COLUMNS), "trade_id": trade_id, **values}


@dataclass
class PublishedLog:
    """The tables `trades` and `trades_changes`, and what they contain."""

    folder: Path
    rows: dict[int, Row] = field(default_factory=dict)
    timestamps: dict[int, int] = field(default_factory=dict)
    published_at: datetime = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)

    @classmethod
    def create(cls, folder: Path, yaml: str = PROJECT) -> "PublishedLog":
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "strandline.yaml").write_text(yaml)
        return cls(folder)

    def open(self) -> Reading:
        return open_reading(self.folder, {})

    def table(self, name: str) -> str:
        return str(self.folder / ".strandline" / "lake" / name)

    def commit(self, changes: Mapping[int, Row | None], *, timestamp: int = 1) -> int:
        """Replace and delete rows in one commit, which the log tells. Returns the version."""
        version, told = self.prepare(changes, timestamp=timestamp)
        self.append(told, version)
        return version

    def prepare(self, changes: Mapping[int, Row | None], *, timestamp: int = 1) -> tuple[int, list[Row]]:
        """Replace and delete rows. Returns the version, and what is to be appended to the log."""
        before = {key: self.rows.get(key) for key in changes}
        for key, row in changes.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
                self.timestamps[key] = timestamp
        version = self._write_rows()
        told = [self._change(key, before[key], changes[key], timestamp) for key in changes]
        ordered = sorted((change for change in told if change is not None), key=lambda one: str(one["key"]))
        return version, [{**change, "version": version, "position": n} for n, change in enumerate(ordered)]

    def reset(self) -> int:
        """A commit of which the log only tells that it cannot tell what changed."""
        version = self._write_rows()
        self.append([{"version": version, "position": 0, "operation": "RESET"}], version)
        return version

    def append(self, rows: list[Row], covered: int, *, anew: bool = False) -> None:
        self.published_at += timedelta(seconds=1)
        shown = [{**dict.fromkeys(LOG.names), **row, "published_at": self.published_at} for row in rows]
        metadata = CommitMetadata.bare(
            run="run-1",
            node="trades_changes",
            token=1,
            operation=Operation.OVERWRITE if anew else Operation.APPEND,
            as_of="",
        )
        table = DeltaTable(self.table("trades"))
        inputs = {"trades": Cursor(table_id=str(table.metadata().id), version=covered)}
        write_deltalake(
            self.table("trades_changes"),
            pa.Table.from_pylist(shown, LOG),
            mode="overwrite" if anew else "append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": to_json(replace(metadata, inputs=inputs))}
            ),
        )

    def compact(self) -> None:
        table = DeltaTable(self.table("trades_changes"))
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def with_column(self, name: str, value: str) -> pa.Table:
        """The rows with one more column."""
        table = DeltaTable(self.table("trades")).to_pyarrow_table()
        return table.append_column(name, pa.array([value] * table.num_rows))

    def seen(self) -> dict[int, Row]:
        """The rows as JSON has them."""
        return {key: json.loads(write_json(row)) for key, row in self.rows.items()}

    def _write_rows(self) -> int:
        rows = [
            {**row, "_source_ts": self.timestamps.get(key), "_deleted": False, "_key": key}
            for key, row in self.rows.items()
        ]
        table = pa.Table.from_pylist(rows, pa.schema([*COLUMNS.items(), *METADATA.items()]))
        write_deltalake(self.table("trades"), table, mode="overwrite")
        return DeltaTable(self.table("trades")).version()

    def _change(self, key: int, old: Row | None, new: Row | None, timestamp: int) -> Row | None:
        if old == new:
            return None
        old_json = None if old is None else json.loads(write_json(old))
        new_json = None if new is None else json.loads(write_json(new))
        shown = new_json if new_json is not None else old_json
        assert shown is not None
        both = old_json is not None and new_json is not None
        fields = [
            name
            for name in COLUMNS
            if not both or (old_json and new_json and old_json[name] != new_json[name])
        ]
        return {
            "operation": "INSERT" if old is None else "DELETE" if new is None else "UPDATE",
            "key": key_text([key]),
            "source_timestamp": timestamp,
            "fields": fields,
            "data": write_json(shown),
            "before": None if old_json is None else write_json({name: old_json[name] for name in fields}),
        }
