"""The state of a fold: plain values that are stored as text and come back equal.

A state may contain None, bool, int, float, str, bytes, Decimal, date, datetime, lists, and dicts with text
keys. Subclasses of these are refused, because they would come back as another type.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

_AS_THEY_ARE = (type(None), bool, int, str)
"""Types that JSON has too."""
_DEEPEST = 100
"""Lists and dicts inside each other. Python's own limit depends on who calls."""
_LARGEST = 10**4000
"""Python neither writes nor reads whole numbers of more than 4,300 digits."""


class StateError(ValueError):
    """A state contains something that cannot be stored."""


def copy_state(state: object, path: str = "state", depth: int = 0) -> Any:
    """A copy of a state that shares nothing with it, as if it had been stored and read.

    Raises StateError for what cannot be stored. `path` names the place in messages.
    """
    kind = type(state)
    if depth > _DEEPEST:
        raise StateError(f"lists and dicts lie more than {_DEEPEST} deep in each other")
    if kind is list:
        assert isinstance(state, list)
        return [copy_state(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(state)]
    if kind is dict:
        assert isinstance(state, dict)
        return {
            _require_text(key, path): copy_state(item, f"{path}.{key}", depth + 1)
            for key, item in state.items()
        }
    if kind is str:
        assert isinstance(state, str)
        return _require_unicode(state, path)
    if isinstance(state, int) and not -_LARGEST < state < _LARGEST:
        raise StateError(f"`{path}` is a whole number of more than 4,000 digits")
    if kind is datetime:
        assert isinstance(state, datetime)
        _encode_zone(state, path)
        return state
    if kind in _AS_THEY_ARE or kind in (float, bytes, Decimal, date):
        return state
    raise StateError(f"`{path}` is a {kind.__name__}, which cannot be stored")


def encode_state(state: object) -> str:
    """A state as text. Equal states have equal text if their dicts have the same order."""
    return json.dumps(_encode(state, "state"), ensure_ascii=False, separators=(",", ":"))


def decode_state(text: str) -> Any:
    """The state that was encoded."""
    return _decode(json.loads(text))


def _encode(value: object, path: str) -> object:
    """A JSON value. What JSON lacks is an object with one key that names the type."""
    match value:
        case list() if type(value) is list:
            return [_encode(item, f"{path}[{number}]") for number, item in enumerate(value)]
        case dict() if type(value) is dict:
            items = {_require_text(key, path): _encode(item, f"{path}.{key}") for key, item in value.items()}
            return {"dict": items}
        case float() if type(value) is float:
            return {"float": repr(value)}
        case bytes() if type(value) is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        case Decimal() if type(value) is Decimal:
            return {"decimal": str(value)}
        case datetime() if type(value) is datetime:
            local = value.replace(tzinfo=None).isoformat()
            return {"datetime": [local, value.fold, _encode_zone(value, path)]}
        case date() if type(value) is date:
            return {"date": value.isoformat()}
        case _ if type(value) in _AS_THEY_ARE:
            return value
    raise StateError(f"`{path}` is a {type(value).__name__}, which cannot be stored")


def _encode_zone(value: datetime, path: str) -> object:
    """The time zone of a datetime: none, an offset in seconds, or a name."""
    zone = value.tzinfo
    if zone is None:
        return None
    if isinstance(zone, timezone):
        return zone.utcoffset(None).total_seconds()
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    raise StateError(f"the time zone of `{path}` is a {type(zone).__name__}, which cannot be stored")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    return _DECODERS[kind](inner)


def _decode_datetime(parts: list[Any]) -> datetime:
    text, fold, zone = parts
    local = datetime.fromisoformat(text).replace(fold=fold)
    if zone is None:
        return local
    if isinstance(zone, str):
        return local.replace(tzinfo=ZoneInfo(zone))
    return local.replace(tzinfo=timezone(timedelta(seconds=zone)) if zone else UTC)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda items: {key: _decode(item) for key, item in items.items()},
    "float": float,
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": _decode_datetime,
}


def _require_text(key: object, path: str) -> str:
    if type(key) is not str:
        raise StateError(f"`{path}` has the key {key!r}, which is not text")
    return _require_unicode(key, path)


def _require_unicode(text: str, path: str) -> str:
    """Refuse half of a surrogate pair: it is in Python's texts, but in no stored one."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise StateError(f"`{path}` has {text!r}, which is not text") from error
    return text
