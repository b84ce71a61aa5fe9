"""The type of an expression that adds, multiplies or chooses between numbers, known without Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

MOST_DIGITS = 38
"""Of any decimal."""
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DELTA_SPELLS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")

Types = Mapping[str, str]
"""By column: its type, as Spark or Delta spells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """At most this many digits, and how many of them follow the point."""

    precision: int
    scale: int = 0
    is_whole: bool = False
    """One of Spark's types of whole numbers, and not a decimal without digits after its point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfColumn:
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactly:
    """A literal, or what is cast to a type."""

    digits: Digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A sum or a difference."""

    left: "NumberType"
    right: "NumberType"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplied:
    left: "NumberType"
    right: "NumberType"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """One of several values, as `CASE` and `coalesce` give it."""

    parts: tuple["NumberType", ...]


NumberType = OfColumn | Exactly | Added | Multiplied | OneOf


def read_digits(type_: str) -> Digits | None:
    """The digits of a type. None if it is not one of exact numbers."""
    spelling = _DELTA_SPELLS.get(type_.lower(), type_.lower())
    if spelling in _WHOLE:
        return Digits(precision=_WHOLE[spelling], is_whole=True)
    if decimal := _DECIMAL.fullmatch(spelling):
        return Digits(precision=int(decimal[1]), scale=int(decimal[2]))
    return None


def find_digits(number: NumberType, types: Types) -> Digits | None:
    """The most digits that a value may have. None if that is not known, or if it is a double.

    May be too many, never too few.
    """
    match number:
        case OfColumn(column=column):
            return read_digits(types[column]) if column in types else None
        case Exactly(digits=digits):
            return digits
        case Added(left=left, right=right) | Multiplied(left=left, right=right):
            ours, theirs = find_digits(left, types), find_digits(right, types)
            if ours is None or theirs is None:
                return None
            if ours.is_whole and theirs.is_whole:
                return max(ours, theirs, key=lambda digits: digits.precision)
            return _add(ours, theirs) if isinstance(number, Added) else _multiply(ours, theirs)
        case OneOf(parts=parts):
            return _choose([find_digits(part, types) for part in parts])


def _add(ours: Digits, theirs: Digits) -> Digits | None:
    either = _widest(ours, theirs)
    return _decimal(either.precision + 1, either.scale)


def _multiply(ours: Digits, theirs: Digits) -> Digits | None:
    return _decimal(ours.precision + theirs.precision + 1, ours.scale + theirs.scale)


def _choose(parts: list[Digits | None]) -> Digits | None:
    chosen = parts[0]
    for part in parts[1:]:
        if chosen is None or part is None:
            return None
        if chosen.is_whole and part.is_whole:
            chosen = max(chosen, part, key=lambda digits: digits.precision)
        else:
            widest = _widest(chosen, part)
            chosen = _decimal(widest.precision, widest.scale)
    return chosen


def _widest(ours: Digits, theirs: Digits) -> Digits:
    before = max(ours.precision - ours.scale, theirs.precision - theirs.scale)
    scale = max(ours.scale, theirs.scale)
    return Digits(precision=before + scale, scale=scale)


def _decimal(precision: int, scale: int) -> Digits | None:
    """Spark rounds what has more digits than a decimal may have. Nothing is known of it here."""
    return Digits(precision=precision, scale=scale) if precision <= MOST_DIGITS else None


def is_exact_type(type_: str) -> bool:
    """Whether the text of a value of this type gives the same value again."""
    spelling = _DELTA_SPELLS.get(type_.lower(), type_.lower())
    return read_digits(type_) is not None or spelling in ("boolean", "date", "timestamp")
