"""Types and defaults as a declaration writes them."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from strandline.model.columns import ColumnType, TimeUnit, TypeName, find_type
from strandline.model.errors import Place
from strandline.model.report import Report, find_nearest

_WORDS = (
    "string",
    "int",
    "bigint",
    "double",
    "decimal(18,2)",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
    "json",
)
_OTHER_WORDS = {
    "integer": "int",
    "long": "bigint",
    "text": "string",
    "varchar": "string",
    "float": "double",
    "real": "double",
    "number": "double",
    "numeric": "decimal(18,2)",
    "decimal": "decimal(18,2)",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
}
_YEAR_9999 = 253_402_300_800
_RANGES = {
    TypeName.INT: 2**31,
    TypeName.BIGINT: 2**63,
    TypeName.TIMESTAMP_MS: _YEAR_9999 * 1000,
    TypeName.TIMESTAMP_US: _YEAR_9999 * 1_000_000,
    TypeName.TIMESTAMP_NS: 2**63,
}


def parse_type(text: str, place: Place, report: Report) -> ColumnType | None:
    """The type that a declaration names. None, with a mistake, if there is no such type."""
    type_ = find_type(text)
    if type_ is None:
        word = text.strip().lower().split("(")[0]
        nearest = _OTHER_WORDS.get(word) or find_nearest(text, _WORDS)
        if word == "decimal" and "(" in text:
            remedy = "Write `decimal(p,s)` with 0 <= s <= p <= 38 and p > 0."
        else:
            remedy = (
                f"Did you mean `{nearest}`?"
                if nearest
                else f"Known types: {', '.join(f'`{w}`' for w in _WORDS)}."
            )
        report.add("unknown-type", f"there is no type `{text}`.", remedy, place)
    return type_


def fit_default(value: object, type_: ColumnType, place: Place, report: Report) -> object:
    """The default as the decoder expects it. None, with a mistake, if it does not fit its type."""
    if value is None:
        return None
    if type_.name is TypeName.JSON:
        return value if isinstance(value, str) and _is_json(value) else json.dumps(value)
    if _fits(value, type_):
        return _as_instant(value, type_)
    shown = json.dumps(value) if not isinstance(value, str) else f'"{value}"'
    unquoted = type_.name is TypeName.STRING and isinstance(value, (int, float))
    remedy = f"Put it in quotes: {json.dumps(str(value))}." if unquoted else f"Write {_example(type_)}."
    report.add("default-does-not-fit", f"the default {shown} is not a `{type_}`.", remedy, place)
    return None


def _as_instant(value: object, type_: ColumnType) -> object:
    """An integer of a time as an instant, because a number is cast to a timestamp as seconds."""
    if not type_.is_integer_time or not isinstance(value, int):
        return value
    nanoseconds = {TimeUnit.MILLISECONDS: 1_000_000, TimeUnit.MICROSECONDS: 1000, TimeUnit.NANOSECONDS: 1}
    micros = value * nanoseconds[type_.unit] // 1000
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _fits(value: object, type_: ColumnType) -> bool:
    try:
        match type_.name:
            case TypeName.STRING:
                return isinstance(value, str)
            case TypeName.BOOLEAN:
                return isinstance(value, bool)
            case TypeName.DOUBLE:
                return isinstance(value, (int, float)) and not isinstance(value, bool)
            case TypeName.DATE:
                return isinstance(value, str) and len(value) == 10 and bool(date.fromisoformat(value))
            case TypeName.TIMESTAMP:
                return isinstance(value, str) and bool(datetime.fromisoformat(value))
            case TypeName.DECIMAL:
                return (
                    not isinstance(value, bool)
                    and isinstance(value, (int, float, str))
                    and _fits_decimal(Decimal(str(value)), type_)
                )
            case _:
                limit = _RANGES[type_.name]
                lowest = -limit if type_.name in (TypeName.INT, TypeName.BIGINT) else 0
                return isinstance(value, int) and not isinstance(value, bool) and lowest <= value < limit
    except (ValueError, InvalidOperation):
        return False


def _fits_decimal(value: Decimal, type_: ColumnType) -> bool:
    if not value.is_finite():
        return False
    return value == round(value, type_.scale) and abs(value) < Decimal(10) ** (type_.precision - type_.scale)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _example(type_: ColumnType) -> str:
    match type_.name:
        case TypeName.BOOLEAN:
            return "`true` or `false`"
        case TypeName.STRING:
            return "text"
        case TypeName.DATE:
            return '"2024-01-13"'
        case TypeName.TIMESTAMP:
            return '"2024-01-13T08:30:00Z"'
        case TypeName.DECIMAL:
            return f"a number with at most {type_.scale} decimals that fits `{type_}`"
        case TypeName.DOUBLE:
            return "a number"
        case _:
            return "a whole number"
