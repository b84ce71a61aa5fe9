"""Rows of the models, as messages and as `--output json` formats them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any


def read_messages(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def as_json(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{column: _spelt(value) for column, value in row.items()} for row in rows]


def _spelt(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value
