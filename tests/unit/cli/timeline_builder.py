"""The project of LANGUAGE's section on timelines, with tables that delta-rs wrote in the layout of ADR 14."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from strandline.catalog import Catalog, acquire_lease, open_catalog, record_commit
from strandline.cli import main
from strandline.declare import load_project
from strandline.lake.log import read_entries
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.metadata import to_json
from strandline.model.node import Project
from strandline.model.plan import Cursor
from strandline.model.scope import NOTHING
from strandline.model.traits import Recount
from tests.unit.declare.timelines.builders import BASE, FILES, FOLDED, VALUED

INSTANT, DAY, AMOUNT = pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(28, 10)
HEAD = pa.struct(
    [
        ("state", pa.string()),
        ("last_on", DAY),
        ("watermark_on", DAY),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("updated_at", INSTANT),
        ("waits", pa.list_(DAY)),
        ("pending", pa.list_(pa.struct([("start", DAY), ("end", DAY)]))),
        ("superseded_by", pa.int64()),
        ("superseded_at", INSTANT),
        ("replaces", pa.int64()),
    ]
)
KEY = [("portfolio_id", pa.string()), ("security_id", pa.string())]
FIELDS = [("quantity", AMOUNT), ("cost_basis", AMOUNT), ("realised", AMOUNT)]
PARTS = [("_key", pa.int64()), ("_deleted", pa.bool_()), ("_role", pa.string()), ("_head", HEAD)]
HISTORY = pa.schema([*KEY, ("date", DAY), *FIELDS, ("epoch", pa.int64()), *PARTS])
VALUES = [("market_value", pa.float64()), ("valuation_status", pa.string())]
SNAPSHOTS = pa.schema([*KEY, ("date", DAY), *FIELDS, *VALUES, ("epoch", pa.int64()), *PARTS])
TRANSACTIONS = pa.schema(
    [
        ("transaction_id", pa.string()),
        *KEY,
        ("transaction_on", DAY),
        ("transaction_at", INSTANT),
        ("amount", AMOUNT),
        ("_deleted", pa.bool_()),
        ("_key", pa.int64()),
    ]
)
CALENDAR = pa.schema([("business_on", DAY), ("changed_at", INSTANT), ("_deleted", pa.bool_())])
SCHEMAS = {
    "position_history": HISTORY,
    "daily_position_snapshots": SNAPSHOTS,
    "transactions": TRANSACTIONS,
    "business_dates": CALENDAR,
}
WEEKDAYS = VALUED.replace("calendar: {dataset: business_dates, date: business_on}", "calendar: weekdays")
TOTALS = """\
jobs:
  - name: totals
    input_datasets: [daily_position_snapshots]
    output_dataset: totals
    incremental: {mode: keyed, key: [portfolio_id, date]}
    update_strategy: replace
    sql: totals.sql
"""
SQL = (
    "SELECT portfolio_id, date, sum(quantity) AS quantity"
    " FROM daily_position_snapshots GROUP BY portfolio_id, date\n"
)


def on(day: int, month: int = 1) -> date:
    return date(2024, month, day)


def at(day: int, hour: int = 17) -> datetime:
    """18:00 in Berlin by default: the date is due."""
    return datetime(2024, 1, day, hour, tzinfo=UTC)


FRIDAY = at(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolios:
    folder: Path

    @property
    def project(self) -> Project:
        return load_project(self.folder, {})

    def table(self, dataset: str) -> str:
        return str(self.folder / ".strandline" / "lake" / dataset)

    def call(self, *words: str) -> int:
        return main([*words, "--project", str(self.folder)])

    def open_catalog(self) -> Catalog:
        return open_catalog(f"sqlite:///{self.folder / '.strandline' / 'catalog.db'}")

    def commit(
        self,
        dataset: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        as_of: datetime = FRIDAY,
        cause: str = "new_input",
        operation: Operation = Operation.REPLACE_KEYS,
        remove: str = "",
        schema: pa.Schema | None = None,
    ) -> int:
        """One commit of ours, recorded. `remove` says which rows leave first, in a commit of its own."""
        uri, node = self.table(dataset), self.project.get(dataset)
        if remove:
            DeltaTable(uri).delete(remove)
        catalog = self.open_catalog()
        there = DeltaTable.is_deltatable(uri)
        token = (DeltaTable(uri).transaction_version(dataset) or 0) if there else 0
        lease = acquire_lease(catalog, dataset, f"{socket.gethostname()}:1", 60, token, True)
        inputs = {
            i.dataset: Cursor(table_id=str(table.metadata().id), version=table.version())
            for i in node.inputs
            if DeltaTable.is_deltatable(self.table(i.dataset))
            and (table := DeltaTable(self.table(i.dataset)))
        }
        metadata = CommitMetadata(
            run="run-1",
            task=f"run-1/{dataset}/{lease.token}",
            node=dataset,
            token=lease.token,
            operation=operation,
            inputs=inputs,
            scope=NOTHING,
            cause=cause,
            config=WrittenConfig(hash=node.config.hash, parts=node.config.parts),
            whole=True,
            as_of=as_of.isoformat(),
            counts={},
            rows=len(rows),
        )
        properties = CommitProperties(
            custom_metadata={"userMetadata": to_json(metadata)},
            app_transactions=[Transaction(dataset, lease.token)],
        )
        partition_by = ["_deleted", "_role"] if node.traits.partitioned else None
        table = pa.Table.from_pylist(list(rows), schema or SCHEMAS[dataset])
        write_deltalake(uri, table, mode="append", partition_by=partition_by, commit_properties=properties)
        version = DeltaTable(uri).version()
        record = next(iter(read_entries(uri, version - 1))).record(str(DeltaTable(uri).metadata().id))
        assert record is not None
        record_commit(
            catalog,
            lease,
            (record,),
            kind=node.kind,
            recount=Recount.NEVER,
            location=uri,
            row_count=len(rows),
            bytes_=0,
            release=True,
            readers=(),
        )
        catalog.close()
        return version


def make_portfolios(folder: Path, *, valued: str = VALUED, jobs: str = "") -> Portfolios:
    """`valued` is the valuation of the timeline, empty for none."""
    files = {**FILES, "totals.sql": SQL, "strandline.yaml": BASE + FOLDED + valued + jobs}
    for name, text in files.items():
        assert isinstance(text, str)
        (folder / name).write_text(text)
    return Portfolios(folder=folder)


def row(key: str, day: date, quantity: int = 0, *, epoch: int = 0, **more: object) -> dict[str, Any]:
    """A published row of `P1 AAPL`: of portfolio and security, separated by a blank."""
    return {
        **_key(key),
        "date": day,
        "quantity": Decimal(quantity),
        "cost_basis": Decimal(2 * quantity),
        "realised": Decimal(0),
        "epoch": epoch,
        "_key": 1,
        "_deleted": False,
        "_role": "row",
        **more,
    }


def head(key: str, status: str = "CURRENT", *, epoch: int = 0, **fields: object) -> dict[str, Any]:
    return {
        **_key(key),
        "epoch": epoch,
        "_key": 2,
        "_deleted": True,
        "_role": "head",
        "_head": _head({"status": status, "updated_at": at(12), **fields}),
    }


def superseded(published: Mapping[str, Any], by: int, when: datetime) -> dict[str, Any]:
    """A row as it was before an epoch replaced or removed it."""
    left = {"superseded_by": by, "superseded_at": when, "replaces": 1}
    return {**published, "_key": None, "_deleted": True, "_role": "epoch", "_head": _head(left)}


def transaction(name: str, key: str, day: date | None, amount: int, hour: int = 9) -> dict[str, Any]:
    when = datetime(2024, 1, day.day if day else 1, hour, tzinfo=UTC)
    return {
        "transaction_id": name,
        **_key(key),
        "transaction_on": day,
        "transaction_at": when,
        "amount": Decimal(amount),
        "_deleted": False,
        "_key": 3,
    }


def business_date(day: date, *, deleted: bool = False) -> dict[str, Any]:
    return {"business_on": day, "changed_at": at(1), "_deleted": deleted}


def _key(key: str) -> dict[str, str | None]:
    portfolio, security = key.split()
    return {"portfolio_id": portfolio, "security_id": None if security == "-" else security}


def _head(fields: Mapping[str, object]) -> dict[str, object]:
    return {field.name: fields.get(field.name) for field in HEAD}
