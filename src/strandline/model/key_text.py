"""The key of a row as one text, which names the row in change logs, events and ids.

The values are those of JSON output, joined by `,`. Different keys have different texts.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal

from .typed_values import show_instant

_ESCAPED = str.maketrans({"%": "%25", ":": "%3A", ",": "%2C"})
_NULL = "%00"
_BROKEN = re.compile("%(?!25|3A|2C)")


def key_text(values: Iterable[object]) -> str:
    """The text of a key. A float is refused: two computations of it may differ in the last digit."""
    return ",".join(_NULL if value is None else _show(value).translate(_ESCAPED) for value in values)


def split_key(text: str) -> tuple[str | None, ...] | None:
    """The texts of a key's values, NULL as None: the inverse of `key_text`. None if it is no such text."""
    parts = text.split(",")
    if any(part != _NULL and _BROKEN.search(part) for part in parts):
        return None
    return tuple(None if part == _NULL else _unescape(part) for part in parts)


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")


def _show(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return show_instant(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            raise TypeError(f"a row key cannot contain a value of type {type(value).__name__}")
