"""Values as the outside sees them: the form of instants, dates, decimals and special numbers in JSON."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half of a character. Two of them in a row are a whole one."""


def json_value(value: object) -> object:
    """Timestamps `2024-01-13T08:30:00.000000Z`, dates `2024-01-13`; decimals, NaN and Infinity as strings.

    A decimal is written with its scale.
    """
    match value:
        case None | bool() | int():
            return value
        case StrEnum():
            return str(value)
        case str():
            return value
        case float():
            return (
                value
                if math.isfinite(value)
                else "NaN"
                if math.isnan(value)
                else "Infinity"
                if value > 0
                else "-Infinity"
            )
        case Decimal():
            return format(value, "f")
        case datetime():
            return instant_text(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {_name(name): json_value(inner) for name, inner in value.items()}
        case list() | tuple():
            return [json_value(inner) for inner in value]
        case bytes():
            return value.hex()
        case _:
            return str(value)


def write_json(value: object) -> str:
    """The value as compact JSON: the same text for equal values."""
    return json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))


def read_json(text: str, **options: Any) -> Any:
    """JSON that somebody sent. Raises ValueError for half of a character too, which no text can contain."""
    value = json.loads(text, **options)
    if _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _name(key: object) -> str:
    """A key of a mapping, which is text in JSON."""
    return str(key).lower() if isinstance(key, bool) else str(json_value(key))


def instant_text(value: datetime) -> str:
    """An instant in UTC, always with microseconds. One without a zone is already UTC."""
    at = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return at.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def recorded_instant(text: str) -> str:
    """An instant that was recorded as ISO text, as all instants are shown. Empty if none was recorded."""
    return instant_text(datetime.fromisoformat(text)) if text else ""
