"""Arrow's values as plain Python values, nested ones too.

Instants have their zone and microseconds, intervals are ISO 8601 text, a source position is a list. A date or
an instant that Python cannot represent (before the year 1, after 9999) is text.
"""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

POSITION_FIELDS = ["name", "part", "place"]
_MICROSECOND, _SECOND, _MINUTE, _HOUR, _DAY = 1, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_PER_UNIT = {"s": _SECOND, "ms": 1000, "us": _MICROSECOND}


def plain_rows(table: Any) -> list[dict[str, object]]:
    columns = [plain_column(table.column(i)) for i in range(table.num_columns)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain_column(column: Any) -> list[object]:
    kind = column.type
    if pa.types.is_struct(kind) and [kind.field(i).name for i in range(kind.num_fields)] == POSITION_FIELDS:
        return [None if v is None else list(v.values()) for v in column.to_pylist()]
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_duration(kind):
        return [_plain(scalar) for scalar in column]
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):
        return [_plain(scalar) for scalar in column]
    return [_in_utc(v) for v in values] if pa.types.is_timestamp(kind) else list(values)


def _plain(scalar: Any) -> object:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _plain(scalar[i]) for i in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return {_key(_plain(entry["key"])): _plain(entry["value"]) for entry in scalar.values}
    if pa.types.is_nested(kind):
        return [_plain(value) for value in scalar.values]
    if pa.types.is_duration(kind):
        return interval_text(
            0, 0, scalar.value // 1000 if kind.unit == "ns" else scalar.value * _PER_UNIT[kind.unit]
        )
    if pa.types.is_interval(kind):
        months, days, nanoseconds = scalar.as_py()
        return interval_text(months, days, nanoseconds // 1000)
    if pa.types.is_timestamp(kind):
        scalar = scalar.cast(pa.timestamp("us", kind.tz), safe=False)
    try:
        return _in_utc(scalar.as_py())
    except (OverflowError, ValueError):
        spelt = str(scalar.cast(pa.string()).as_py())
        return spelt.replace(" ", "T").removesuffix("Z") + "Z" if pa.types.is_timestamp(kind) else spelt


def _in_utc(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _key(value: object) -> object:
    """A key of a map. JSON has only text keys, so a nested value is written out."""
    return str(value) if isinstance(value, dict | list) else value


def interval_text(months: int, days: int, microseconds: int) -> str:
    """`P1M2DT3H4M5.5S`, with a minus in front if no part is positive, else before each negative part."""
    if min(months, days, microseconds) < 0 and max(months, days, microseconds) <= 0:
        return "-" + interval_text(-months, -days, -microseconds)
    sign, left = (-1, -microseconds) if microseconds < 0 else (1, microseconds)
    if sign > 0 and days >= 0:
        days, left = days + left // _DAY, left % _DAY
    hours, minutes, rest = left // _HOUR, left % _HOUR // _MINUTE, left % _MINUTE
    seconds = (
        f"{sign * rest // _SECOND if rest % _SECOND == 0 else sign * rest / _SECOND:f}".rstrip("0").rstrip(
            "."
        )
        if rest
        else ""
    )
    date_part = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    time_part = (
        (f"{sign * hours}H" if hours else "")
        + (f"{sign * minutes}M" if minutes else "")
        + (f"{seconds}S" if rest else "")
    )
    return "P" + (date_part + ("T" + time_part if time_part else "") or "T0S")
