"""The JSON form of a scope, in commits, in their invalidations and in the catalog's records of tasks."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import date
from typing import Any

from .condition_json import from_row_filter, to_plain, to_row_filter
from .conditions import AllOf
from .errors import CallError
from .scope import (
    NOTHING,
    ClockMove,
    Described,
    Everything,
    Increment,
    Keys,
    KeysFrom,
    Left,
    Origin,
    Partitions,
    Range,
    Rows,
    Scope,
)
from .typed_values import Scalar

_CLASSES: Mapping[str, type[Scope]] = {
    str(one.kind): one for one in (Everything, Rows, Keys, KeysFrom, Partitions, Range)
}


def scope_to_json(scope: Scope) -> object:
    """`{"kind": "keys", "count": 12}`: fields at their default are left out."""
    if isinstance(scope, Described):
        return scope.text
    return {"kind": str(scope.kind)} | _written(scope)


def scope_from_json(value: object) -> Scope:
    """The inverse of `scope_to_json`. Values whose type JSON lacks become text; `check_filter` restores them.

    A text is a scope of an older commit. Raises KeyError, TypeError or ValueError for what is not a scope.
    """
    if isinstance(value, str):
        return Described(text=value) if value else NOTHING
    if not isinstance(value, dict):
        raise TypeError("a scope is an object")
    scope: Scope = _read(_CLASSES[_text(value["kind"])], value)
    return scope


def _written(value: Scope | Origin) -> dict[str, object]:
    """The fields that differ from their default."""
    pairs = ((field, getattr(value, field.name)) for field in fields(value))
    return {
        field.name: _plain(content)
        for field, content in pairs
        if field.default is MISSING or content != field.default
    }


def _plain(value: Any) -> object:
    match value:
        case AllOf():
            return to_row_filter(value)
        case Increment() | ClockMove() | Left():
            return _written(value)
        case tuple():
            return [_plain(one) for one in value]
        case _:
            return to_plain(value)


def _read(class_: type[Any], value: Mapping[str, object]) -> Any:
    """A field that a later version of Strandline adds is ignored."""
    names = [field.name for field in fields(class_)]
    return class_(**{name: _READERS[name](value[name]) for name in names if name in value})


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(one) for one in _list(value))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _scalar(value: object) -> Scalar:
    if not isinstance(value, Scalar):
        raise TypeError("not a value of a column")
    return value


def _filter(value: object) -> AllOf:
    try:
        return from_row_filter(value)
    except CallError as error:
        raise ValueError("not a filter") from error


def _origin(value: object) -> Origin:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    class_ = Increment if "dataset" in value else Left if "left" in value else ClockMove
    origin: Origin = _read(class_, value)
    return origin


_READERS: Mapping[str, Callable[[object], object]] = {
    "because": _text,
    "before": _text,
    "bytes": _number,
    "column": _text,
    "coming": _flag,
    "count": _number,
    "dataset": _text,
    "first": _number,
    "from_on": lambda value: date.fromisoformat(_text(value)),
    "high": _scalar,
    "invalidations": _number,
    "left": _text,
    "last": _number,
    "low": _scalar,
    "names": _texts,
    "now": _text,
    "of": _text,
    "origins": lambda value: tuple(_origin(one) for one in _list(value)),
    "reasons": _texts,
    "refused": _flag,
    "rows": _number,
    "waiting": _number,
    "where": _filter,
}
"""By field: the function that reads its value. A name means the same in every scope."""
