"""Conditions on rows: comparisons of columns with values, joined by AND, OR and NOT.

`where`, `fire` and `clear` are conditions, and so is a row filter, which joins comparisons by AND only. A
condition is true, false or unknown (NULL) for a row, as in SQL. Only true counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from .typed_values import Scalar as Scalar  # re-exported: callers need it to make comparisons

DEEPEST = 8
"""The deepest nesting of `_and`, `_or` and `_not`. A condition without them is 1 deep."""
MOST_COMPARISONS = 100
MOST_VALUES = 10_000
"""The limit for all lists of a condition together: each value becomes a literal of the compiled condition."""


class Operator(StrEnum):
    EQ = "eq"
    NEQ = "neq"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    IS_NULL = "is_null"


SYMBOLS = {
    Operator.EQ: "=",
    Operator.NEQ: "<>",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
    Operator.IN: "IN",
    Operator.NIN: "NOT IN",
}
"""How SQL spells them. `is_null` has a spelling of its own."""

Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`value` is a tuple for `in` and `nin`, a bool for `is_null`, and one value for all other operators.

    It is unknown for NULL, except `is_null` and the comparison with an empty list.
    """

    column: str
    operator: Operator
    value: Value

    @property
    def values(self) -> tuple[Scalar, ...]:
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """False if a part is false, else unknown if a part is unknown, else true. Without parts it is true."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """True if a part is true, else unknown if a part is unknown, else false. Without parts it is false."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """True and false change places. Unknown stays unknown."""

    part: "Condition"


Condition = Comparison | AllOf | AnyOf | Negation

EVERY_ROW = AllOf(parts=())


def find_comparisons(condition: Condition) -> Iterator[Comparison]:
    """All comparisons of a condition, in the order in which they are written."""
    match condition:
        case Comparison():
            yield condition
        case Negation(part=part):
            yield from find_comparisons(part)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from find_comparisons(part)


def find_columns(condition: Condition) -> frozenset[str]:
    return frozenset(comparison.column for comparison in find_comparisons(condition))


def flatten(condition: Condition) -> tuple[Comparison, ...] | None:
    """The comparisons of a condition that joins them by AND only. None for any other condition."""
    match condition:
        case Comparison():
            return (condition,)
        case AllOf(parts=parts):
            comparisons: list[Comparison] = []
            for part in parts:
                joined = flatten(part)
                if joined is None:
                    return None
                comparisons += joined
            return tuple(comparisons)
        case _:
            return None
