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
_SHARED = frozenset({type(None), bool, float, bytes, Decimal, date})
"""Types whose values never change and can always be stored."""
_USUAL = 2**63
"""Whole numbers below it are stored without a look at their digits."""
_DEEPEST = 100
"""Lists and dicts inside each other. Python's own limit depends on who calls."""
_LARGEST = 10**4000
"""Python neither writes nor reads whole numbers of more than 4,300 digits."""


class StateError(ValueError):
    """A state contains something that cannot be stored."""


class _UnusualError(Exception):
    """A state contains something that has to be examined."""


def copy_state(state: object) -> Any:
    """A copy of a state that shares nothing with it, as if it had been stored and read.

    Raises StateError for what cannot be stored.
    """
    try:
        return _copy_usual(state, 0)
    except _UnusualError:
        return _copy_examined(state, "state", 0)


def _copy_usual(state: Any, depth: int) -> Any:
    """A copy of what most states contain. This is called for every value of every date."""
    kind = type(state)
    if kind in _SHARED:
        return state
    if kind is str and state.isascii():
        return state
    if kind is int and -_USUAL < state < _USUAL:
        return state
    if kind is list and depth < _DEEPEST:
        return [item if type(item) in _SHARED else _copy_usual(item, depth + 1) for item in state]
    if kind is dict and depth < _DEEPEST:
        copied = state.copy()
        for key, item in state.items():
            if type(key) is not str or not key.isascii():
                raise _UnusualError
            if type(item) not in _SHARED:
                copied[key] = _copy_usual(item, depth + 1)
        return copied
    raise _UnusualError


def _copy_examined(state: object, path: str, depth: int) -> Any:
    """A copy of any state. `path` names the place in messages."""
    kind = type(state)
    if depth > _DEEPEST:
        raise StateError(f"lists and dicts lie more than {_DEEPEST} deep in each other")
    if kind is list:
        assert isinstance(state, list)
        return [_copy_examined(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(state)]
    if kind is dict:
        assert isinstance(state, dict)
        return {
            _require_text(key, path): _copy_examined(item, f"{path}.{key}", depth + 1)
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
    if kind in _AS_THEY_ARE or kind in _SHARED:
        return state
    raise StateError(f"`{path}` is a {kind.__name__}, which cannot be stored")


def encode_state(state: object) -> str:
    """A state as text. Equal states have equal text if their dicts have the same order."""
    try:
        return json.dumps(_encode(state), ensure_ascii=False, separators=(",", ":"))
    except StateError:
        _copy_examined(state, "state", 0)  # raises, too, and names the place
        raise


def decode_state(text: str) -> Any:
    """The state that was encoded."""
    return _decode(json.loads(text))


def _encode(value: object) -> object:
    """A JSON value. What JSON lacks is an object with one key that names the type."""
    kind = type(value)
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind in _AS_THEY_ARE:
        return value
    match value:
        case list() if kind is list:
            return [_encode(item) for item in value]
        case dict() if kind is dict:
            return {"dict": {_require_text(key): _encode(item) for key, item in value.items()}}
        case float() if kind is float:
            return {"float": repr(value)}
        case bytes() if kind is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        case datetime() if kind is datetime:
            local = value.replace(tzinfo=None).isoformat()
            return {"datetime": [local, value.fold, _encode_zone(value)]}
        case date() if kind is date:
            return {"date": value.isoformat()}
    raise StateError(f"a {kind.__name__} cannot be stored")


def _encode_zone(value: datetime, path: str = "state") -> object:
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


def _require_text(key: object, path: str = "state") -> str:
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
