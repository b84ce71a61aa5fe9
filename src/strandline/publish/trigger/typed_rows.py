"""A row's JSON -> values of the columns' types, as conditions compare them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from strandline.model.columns import ColumnType, TypeName

_FIRST, _LAST = (datetime(edge.year, edge.month, edge.day, tzinfo=UTC) for edge in (date.min, date.max))


def read_typed(row: Mapping[str, Any] | None, kinds: Mapping[str, ColumnType]) -> dict[str, object] | None:
    """The columns of a row that have a type here. A missing column is NULL."""
    if row is None:
        return None
    return {name: _read(row.get(name), kind) for name, kind in kinds.items()}


def _read(value: Any, kind: ColumnType) -> object:
    if value is None:
        return None
    match kind.name:
        case TypeName.DECIMAL:
            return Decimal(str(value))
        case TypeName.DOUBLE:
            return float(value)
        case TypeName.DATE:
            return _read_date(value)
        case TypeName.TIMESTAMP:
            return _read_instant(value)
        case _:
            return value


def _read_date(text: str) -> date:
    """A date outside of the years that Python has is before or after all that a condition can name."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min if text.startswith(("-", "0000")) else date.max


def _read_instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _FIRST if text.startswith(("-", "0000")) else _LAST
