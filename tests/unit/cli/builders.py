"""A small project whose tables are written by delta-rs, as a run would have left them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.app.init import init
from strandline.cli import main

POSITION = pa.struct([("name", pa.string()), ("part", pa.int64()), ("place", pa.int64())])
INSTANT = pa.timestamp("us", "UTC")
ORDERS = pa.schema(
    [
        ("_source_position", POSITION),
        ("_ingested_at", INSTANT),
        ("order_id", pa.string()),
        ("customer", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("status", pa.string()),
        ("changed_at", INSTANT),
        ("_source_at", INSTANT),
        ("_source_ts", pa.int64()),
        ("_deleted", pa.bool_()),
        ("_key", pa.int64()),
        ("_config", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """The project of `strandline init`, with orders in its lake."""

    folder: Path

    def write(
        self, dataset: str, rows: Sequence[dict[str, Any]], schema: pa.Schema = ORDERS, mode: str = "append"
    ) -> None:
        table = pa.Table.from_pylist(list(rows), schema)
        write_deltalake(
            str(self.folder / ".strandline" / "lake" / dataset),
            table,
            mode=mode,
            schema_mode="overwrite" if mode == "overwrite" else None,
        )  # type: ignore[call-overload]

    def call(self, *words: str) -> int:
        return main([*words, "--project", str(self.folder)])


def make_shop(folder: Path) -> Shop:
    init(folder)
    return Shop(folder=folder)


def at(hour: int, day: int = 12) -> datetime:
    return datetime(2024, 1, day, hour, tzinfo=UTC)


def order(
    order_id: str,
    amount: str,
    hour: int,
    place: int,
    *,
    status: str = "PLACED",
    customer: str = "Asha",
    file: str = "a.jsonl",
) -> dict[str, Any]:
    """A fact about an order."""
    return {
        "_source_position": {"name": file, "part": 0, "place": place},
        "_ingested_at": at(0, day=20),
        "order_id": order_id,
        "customer": customer,
        "amount": Decimal(amount),
        "status": status,
        "changed_at": at(hour),
        "_source_at": at(hour),
        "_source_ts": int(at(hour).timestamp() * 1_000_000),
        "_deleted": status == "CANCELLED",
        "_key": hash(order_id) % 1000,
        "_config": "c",
    }


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """The one JSON document on stdout."""
    return json.loads(capsys.readouterr().out)


@contextmanager
def no_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Starting Spark fails here."""
    from strandline.spark import session

    with monkeypatch.context() as patched:
        patched.setattr(session, "start_session", lambda *_: pytest.fail("Spark was started"))
        yield
