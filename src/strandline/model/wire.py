"""Values as JSON that names their classes, and back: what crosses from the command line to a server.

A `Wire` knows a closed set of frozen dataclasses and enumerations: those that can be reached through the
fields of the values that it was made for. Nothing is imported by a name that somebody sends. JSON's own
values stand for themselves. A list is a tuple. Everything else is an object with its word under `$`.
"""

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, get_args, get_type_hints

from .errors import (
    CallError,
    ConflictError,
    FencedError,
    GuardedError,
    Mistake,
    OutsideError,
    Place,
    ProjectError,
    StrandlineError,
    WorkError,
)

_WORD = "$"
_ERRORS = {
    error.__name__: error
    for error in (
        StrandlineError,
        CallError,
        WorkError,
        ConflictError,
        FencedError,
        GuardedError,
        OutsideError,
        ProjectError,
    )
}
_PLAIN: dict[str, tuple[type, Callable[[Any], object], Callable[[Any], object]]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (
        timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(days=parts[0], seconds=parts[1], microseconds=parts[2]),
    ),
    "Decimal": (Decimal, str, Decimal),
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
    "float": (float, repr, float),
}
"""By word: the type, and the ways there and back. Finite floats stand for themselves."""


class WireError(ValueError):
    """What arrived does not stand for a value that this Wire knows, or a value has a class it lacks."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Writes and reads the values of a closed set of classes."""

    classes: Mapping[str, type]
    """By name. Two classes of one name cannot both cross."""

    @classmethod
    def of(cls, *roots: type) -> "Wire":
        """For these dataclasses and everything that their fields may hold."""
        found: dict[str, type] = {}
        for root in (*roots, Mistake, Place):
            _collect(root, found)
        return cls(found)

    def to_wire(self, value: object) -> Any:
        """JSON for a value. Raises WireError for one that could not be read back."""
        match value:
            case StrandlineError():
                return self._write_error(value)
            case Enum():
                return {_WORD: self._name(type(value)), "value": value.value}
            case None | bool() | int() | str():
                return value
            case float() if math.isfinite(value):
                return value
            case tuple():
                return [self.to_wire(part) for part in value]
            case list():
                return {_WORD: "list", "value": [self.to_wire(part) for part in value]}
            case frozenset():
                parts = sorted((self.to_wire(part) for part in value), key=repr)
                return {_WORD: "frozenset", "value": parts}
            case Mapping():
                # A list of pairs: keys may be of any type, and their order is kept.
                pairs = [[self.to_wire(key), self.to_wire(part)] for key, part in value.items()]
                return {_WORD: "mapping", "value": pairs}
        if is_dataclass(value):
            parts_by_name = {f.name: self.to_wire(getattr(value, f.name)) for f in fields(value)}
            return {_WORD: self._name(type(value)), **parts_by_name}
        for word, (kind, write, _) in _PLAIN.items():  # `datetime` before `date`, which it also is
            if isinstance(value, kind):
                return {_WORD: word, "value": write(value)}
        raise WireError(f"a value of type {type(value).__name__} cannot cross")

    def from_wire(self, document: Any) -> Any:
        """The value that JSON stands for. Raises WireError for anything else."""
        match document:
            case None | bool() | int() | float() | str():
                return document
            case list():
                return tuple(self.from_wire(part) for part in document)
            case {"$": str(word)}:
                try:
                    return self._read(word, {name: part for name, part in document.items() if name != _WORD})
                except (TypeError, ValueError, ArithmeticError, LookupError) as error:
                    raise WireError(f"this is not a `{word}`: {error}") from error
            case _:
                raise WireError("an object without `$`")

    def _name(self, kind: type) -> str:
        if self.classes.get(kind.__name__) is not kind:
            raise WireError(f"the class {kind.__name__} cannot cross")
        return kind.__name__

    def _read(self, word: str, rest: Mapping[str, Any]) -> object:
        match word:
            case "list":
                return [self.from_wire(part) for part in rest["value"]]
            case "frozenset":
                return frozenset(self.from_wire(part) for part in rest["value"])
            case "mapping":
                return {self.from_wire(key): self.from_wire(part) for key, part in rest["value"]}
        if word in _PLAIN:
            return _PLAIN[word][2](rest["value"])
        if word in _ERRORS:
            return self._read_error(_ERRORS[word], rest)
        if word not in self.classes:
            raise WireError(f"there is no class `{word}`")
        kind = self.classes[word]
        if issubclass(kind, Enum):
            return kind(rest["value"])
        return kind(**{name: self.from_wire(part) for name, part in rest.items()})

    def _write_error(self, error: StrandlineError) -> dict[str, object]:
        """An error of a class of its own crosses as the nearest one that everybody knows."""
        word = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
        if isinstance(error, ProjectError):
            return {_WORD: word, "mistakes": self.to_wire(error.mistakes)}
        return {_WORD: word, "what": error.what, "remedy": error.remedy, "slug": error.slug}

    def _read_error(self, kind: type[StrandlineError], rest: Mapping[str, Any]) -> StrandlineError:
        if issubclass(kind, ProjectError):
            return kind(self.from_wire(rest["mistakes"]))
        return kind(rest["what"], remedy=rest["remedy"], slug=rest["slug"])


def _collect(hint: object, found: dict[str, type]) -> None:
    """Add the classes that a type hint names, and those that their fields name."""
    if not isinstance(hint, type):
        for part in get_args(hint):
            _collect(part, found)
        return
    for part in get_args(hint):
        _collect(part, found)
    is_value = is_dataclass(hint) or issubclass(hint, Enum)
    if not is_value or found.get(hint.__name__) is hint:
        return
    if hint.__name__ in found or hint.__name__ in _PLAIN or hint.__name__ in _ERRORS:
        raise WireError(f"two classes have the name {hint.__name__}")
    found[hint.__name__] = hint
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        for field in fields(hint):
            _collect(hints[field.name], found)
