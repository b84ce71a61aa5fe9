"""A row's JSON -> values of the columns' types, as conditions compare them.

A row that is told from before may have been written when a column had another type. Its value is read as one
of the type that the column has now, and is NULL if it is none.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from strandline.model.columns import ColumnType, TypeName
from strandline.model.json_values import write_json
from strandline.model.typed_values import as_utc

_FIRST, _LAST = (datetime(edge.year, edge.month, edge.day, tzinfo=UTC) for edge in (date.min, date.max))
_OUTSIDE = re.compile(r"(0000|[+-][0-9]{4,}|[0-9]{5,})-[0-9]{2}-[0-9]{2}(T.*)?")
"""A date or an instant of a year that Python does not have: it has those from 1 to 9999."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_TRUTHS = {"true": True, "false": False}


def read_typed(row: Mapping[str, Any] | None, kinds: Mapping[str, ColumnType]) -> dict[str, object] | None:
    """The columns of a row that have a type here. A missing column is NULL."""
    if row is None:
        return None
    return {name: _read(row.get(name), kind) for name, kind in kinds.items()}


def _read(value: Any, kind: ColumnType) -> object:
    if value is None:
        return None
    match kind.name:
        case TypeName.STRING:
            return value if isinstance(value, str) else write_json(value)
        case TypeName.INT | TypeName.BIGINT:
            return value if type(value) is int else _read_whole(value)
        case TypeName.DECIMAL:
            return _read_exact(value)
        case TypeName.DOUBLE:
            return _read_double(value)
        case TypeName.BOOLEAN:
            return value if isinstance(value, bool) else _TRUTHS.get(str(value))
        case TypeName.DATE:
            return _read_date(str(value))
        case TypeName.TIMESTAMP:
            return _read_instant(str(value))
        case _:
            return value


def _read_exact(value: object) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _read_whole(value: object) -> int | None:
    """None if it has a fraction, or no place in 64 bits: `1e999999999` would take all memory there is."""
    number = _read_exact(value)
    if number is None or not _LEAST <= number <= _MOST or number != number.to_integral_value():
        return None
    return int(number)


def _read_double(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _read_date(text: str) -> date | None:
    """A date outside of the years that Python has is before or after all that a condition can name."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        first, last = date.min, date.max
        return (first if _is_early(text) else last) if _OUTSIDE.fullmatch(text) else None


def _read_instant(text: str) -> datetime | None:
    try:
        return as_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return (_FIRST if _is_early(text) else _LAST) if _OUTSIDE.fullmatch(text) else None


def _is_early(text: str) -> bool:
    return text.startswith(("-", "0000"))
