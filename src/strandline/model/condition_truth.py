"""Whether a condition holds for a row, in plain Python: true, false, or None for unknown.

The rules are those of the compiled forms, and a property test compares the three. Text compares by code
point. NaN is equal to itself and above all other numbers; -0.0 is equal to 0.0.
"""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from .conditions import AllOf, AnyOf, Comparison, Condition, Negation, Operator

_COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: eq,
    Operator.NEQ: ne,
    Operator.GT: gt,
    Operator.GTE: ge,
    Operator.LT: lt,
    Operator.LTE: le,
}


def is_true(condition: Condition, row: Mapping[str, object]) -> bool:
    """Whether the row belongs to the condition. Unknown does not count."""
    return evaluate(condition, row) is True


def evaluate(condition: Condition, row: Mapping[str, object]) -> bool | None:
    """For a checked condition and a row with values of the columns' types. A missing column is NULL."""
    match condition:
        case Comparison():
            return _compare(condition, row.get(condition.column))
        case Negation(part=part):
            inner = evaluate(part, row)
            return None if inner is None else not inner
        case AllOf(parts=parts):
            return _join(parts, row, decisive=False)
        case AnyOf(parts=parts):
            return _join(parts, row, decisive=True)


def _join(parts: tuple[Condition, ...], row: Mapping[str, object], *, decisive: bool) -> bool | None:
    """One part with the decisive value decides, whatever the others are."""
    unknown = False
    for part in parts:
        truth = evaluate(part, row)
        if truth is decisive:
            return decisive
        unknown = unknown or truth is None
    return None if unknown else not decisive


def _compare(comparison: Comparison, value: object) -> bool | None:
    operator = comparison.operator
    if operator is Operator.IS_NULL:
        return (value is None) is comparison.value
    if operator in (Operator.IN, Operator.NIN) and not comparison.values:
        return operator is Operator.NIN
    if value is None:
        return None
    here = _place(value)
    if operator in (Operator.IN, Operator.NIN):
        listed = any(here == _place(one) for one in comparison.values)
        return listed if operator is Operator.IN else not listed
    return _COMPARE[operator](here, _place(comparison.values[0]))


def _place(value: object) -> tuple[bool, object]:
    """The value on an axis on which NaN is above all others."""
    is_nan = isinstance(value, float) and value != value
    return is_nan, 0 if is_nan else value
