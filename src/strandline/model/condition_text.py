"""Conditions as people read them. A row filter reads back from its text."""

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

from .columns import quote
from .conditions import SYMBOLS, AllOf, AnyOf, Comparison, Condition, Negation, Operator, Value
from .typed_values import Scalar, show_instant

_SHOWN_VALUES = 5


def describe(condition: Condition) -> str:
    """A condition as people read it. A long list is shortened."""
    match condition:
        case Comparison():
            return _describe(condition)
        case Negation(part=part):
            return f"NOT ({describe(part)})"
        case AnyOf(parts=parts):
            return " OR ".join(f"({describe(part)})" for part in parts) or "no row"
        case AllOf(parts=parts):
            return " AND ".join(_describe_all(parts)) or "every row"


def literal(value: Scalar) -> str:
    """A value as Spark's SQL writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return f"'{show_double(value)}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime():
            return f"TIMESTAMP '{show_instant(value)}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return format(value, "f")
        case _:
            return repr(value)


def show_double(value: float) -> str | float:
    """A double as JSON stores it: NaN and Infinity, which JSON lacks, are text."""
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _describe_all(parts: tuple[Condition, ...]) -> Iterator[str]:
    """The parts, with the comparisons of one column side by side."""
    by_column: dict[str, list[Comparison]] = {}
    for part in parts:
        if isinstance(part, Comparison):
            by_column.setdefault(part.column, []).append(part)
    for column, comparisons in by_column.items():
        yield from _describe_column(column, comparisons)
    for part in parts:
        if not isinstance(part, Comparison):
            yield f"({describe(part)})"


def _describe_column(column: str, comparisons: list[Comparison]) -> Iterator[str]:
    value_by_operator = {comparison.operator: comparison.value for comparison in comparisons}
    if len(comparisons) == 2 and value_by_operator.keys() == {Operator.GTE, Operator.LTE}:
        low, high = (_operand(value_by_operator[operator]) for operator in (Operator.GTE, Operator.LTE))
        yield f"{_name(column)} between {low} and {high}"
    else:
        yield from map(_describe, comparisons)


def _describe(comparison: Comparison) -> str:
    name = _name(comparison.column)
    if comparison.operator is Operator.IS_NULL:
        return f"{name} IS NULL" if comparison.value else f"{name} IS NOT NULL"
    return f"{name} {SYMBOLS[comparison.operator]} {_operand(comparison.value)}"


def _name(column: str) -> str:
    return column if column.isidentifier() else quote(column)


def _operand(value: Value) -> str:
    if not isinstance(value, tuple):
        return literal(value)
    more = [f"... {len(value) - _SHOWN_VALUES} more"] if len(value) > _SHOWN_VALUES else []
    return f"({', '.join([literal(one) for one in value[:_SHOWN_VALUES]] + more)})"
