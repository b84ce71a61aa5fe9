"""A scope: the part of a dataset that a task, a commit or an invalidation covers.

A scope is known in two steps. A plan knows where it comes from (`origins`, or what a person named). The task
computes it and records how much it was (`count`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import ClassVar

from .conditions import AllOf, Comparison, Operator
from .typed_values import Scalar

COUNTED_NAMES = 3
"""At most this many of the partitions that a task computed are named."""


class ScopeKind(StrEnum):
    EVERYTHING = "everything"
    ROWS = "rows"
    KEYS = "keys"
    KEYS_FROM = "keys_from"
    PARTITIONS = "partitions"
    RANGE = "range"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """What has changed in an input since a node read it, as far as a plan knows it.

    If it has no versions and is not `coming`, it means all of the input.
    """

    dataset: str
    first: int | None = None
    last: int | None = None
    """The first and the last version that give the node work."""
    rows: int = 0
    """Estimated from statistics."""
    invalidations: int = 0
    reasons: tuple[str, ...] = ()
    """Why those invalidations were recorded."""
    coming: bool = False
    """The same run writes the input before the task reads it. It may turn out to change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMove:
    """`as_of` has moved since the node was last computed, so rows that depend on it may change."""

    before: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an earlier batch left to do. The table itself says what that is."""

    left: str
    """What is left, in words."""


Origin = Increment | ClockMove | Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    kind: ClassVar[ScopeKind] = ScopeKind.EVERYTHING

    because: str = ""
    """Why a task that was planned for less covers everything."""
    origins: tuple[Origin, ...] = ()
    """What touches everything. Without them everything is covered in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    kind: ClassVar[ScopeKind] = ScopeKind.ROWS

    count: int | None = None
    of: str = "rows"
    """What is counted, in words."""
    bytes: int | None = None
    origins: tuple[Origin, ...] = ()
    where: AllOf | None = None
    """The rows that someone named."""
    refused: bool = False
    """The rows that were refused before and are decoded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    kind: ClassVar[ScopeKind] = ScopeKind.KEYS

    count: int | None = None
    of: str = "keys"
    """What a key is, in words. For a job with a cursor it is a value of its column."""
    origins: tuple[Origin, ...] = ()
    where: AllOf | None = None
    """The rows that someone named. Their keys are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysFrom:
    """Keys, each from a date on: what comes before it stays as it is."""

    kind: ClassVar[ScopeKind] = ScopeKind.KEYS_FROM

    from_on: date
    count: int | None = None
    """The number of keys. None means every key, or that it is not known yet."""
    of: str = "keys"
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    kind: ClassVar[ScopeKind] = ScopeKind.PARTITIONS

    names: tuple[str, ...] = ()
    """All of them. If `count` is set, only the first of them."""
    count: int | None = None
    waiting: int = 0
    """The number of partitions that were left out because they are not final yet."""
    origins: tuple[Origin, ...] = ()
    where: AllOf | None = None
    """The rows that someone named, or the rows of the named partition. Their partitions are meant."""

    @classmethod
    def counted(cls, names: Iterable[str], waiting: int = 0) -> "Partitions":
        """The scope of partitions that were computed. They may be many, and a commit lists them elsewhere."""
        listed = tuple(names)
        return cls(names=listed[:COUNTED_NAMES], count=len(listed), waiting=waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The rows with a value of a column from `low` to `high`, both included."""

    kind: ClassVar[ScopeKind] = ScopeKind.RANGE

    column: str
    low: Scalar
    high: Scalar
    count: int | None = None
    """The number of covered values in the range. None means all."""
    of: str = "values"
    where: AllOf | None = None
    """Only rows for which this holds too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Only words, which commits and tasks recorded before scopes were values. It is read and never made."""

    kind: ClassVar[ScopeKind] = ScopeKind.DESCRIBED

    text: str


Scope = Everything | Rows | Keys | KeysFrom | Partitions | Range | Described

EVERYTHING = Everything()
NOTHING = Rows(count=0)


def is_empty(scope: Scope) -> bool:
    """Whether a scope certainly covers nothing."""
    match scope:
        case Everything():
            return False
        case Described(text=text):
            return not text
        case _ if scope.count is not None:
            return scope.count == 0
        case KeysFrom() | Range():
            return False
        case Rows():
            return not (scope.origins or scope.where or scope.refused)
        case Keys():
            return not (scope.origins or scope.where)
        case Partitions():
            return not (scope.names or scope.origins or scope.where)


def follows_inputs(scope: Scope) -> bool:
    """Whether a scope is empty if no input has moved: neither a person nor the clock requires any of it."""
    match scope:
        case Rows() | Keys() | Partitions():
            moved = tuple(origin for origin in scope.origins if not isinstance(origin, Increment))
            return is_empty(replace(scope, origins=moved))
        case Everything(origins=(_, *_)) | KeysFrom(origins=(_, *_)):
            return is_empty(scope) or all(isinstance(origin, Increment) for origin in scope.origins)
        case _:
            return is_empty(scope)


def add_origins(scope: Scope, origins: tuple[Origin, ...]) -> Scope:
    """A scope that also covers what follows from these origins."""
    match scope:
        case Everything(origins=()):
            return scope
        case Everything() | Rows() | Keys() | KeysFrom() | Partitions():
            return replace(scope, origins=(*scope.origins, *origins))
        case _:
            raise ValueError(f"a scope of kind {scope.kind} does not follow from anything")


def find_origins(scope: Scope) -> tuple[Origin, ...]:
    match scope:
        case Everything() | Rows() | Keys() | KeysFrom() | Partitions():
            return scope.origins
        case _:
            return ()


def find_filter(scope: Scope) -> AllOf | None:
    """The rows that a scope names by their values. None if it names none."""
    match scope:
        case Rows() | Keys() | Partitions():
            return scope.where
        case Range(column=column, low=low, high=high):
            edges = (
                Comparison(column=column, operator=Operator.GTE, value=low),
                Comparison(column=column, operator=Operator.LTE, value=high),
            )
            return AllOf(parts=(*(scope.where.parts if scope.where else ()), *edges))
        case _:
            return None


def find_partitions(scope: Scope) -> tuple[str, ...]:
    """The partitions that someone named."""
    return scope.names if isinstance(scope, Partitions) and scope.count is None else ()
