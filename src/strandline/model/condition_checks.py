"""Checks a condition against columns: they exist, its values are of their types, and it is not too large."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from .columns import METADATA_COLUMNS, ColumnType, TypeName
from .condition_text import literal
from .conditions import (
    MOST_COMPARISONS,
    MOST_VALUES,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Negation,
    Operator,
    find_comparisons,
)
from .errors import CallError
from .typed_values import EXPECTED, Scalar, find_stored_type, fit_value

_SHOWN_LETTERS = 60
_NOT_FINITE = ("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf")
"""As JSON writes such a double, and as Python does."""


def check_condition(condition: Condition, columns: Mapping[str, str | None]) -> Condition:
    """The condition with the columns' own names and with values of their types.

    `columns` contains the type of each column as Spark or Delta spells it. If it is None, the type is not
    known yet, and values stay as they are.
    """
    check_size(condition)
    return _check(condition, columns)


def check_filter(filter: AllOf, columns: Mapping[str, str]) -> AllOf:
    """`check_condition` for a row filter, which stays one."""
    checked = check_condition(filter, columns)
    assert isinstance(checked, AllOf)
    return checked


def check_size(condition: Condition) -> None:
    comparisons = list(find_comparisons(condition))
    if len(comparisons) > MOST_COMPARISONS:
        count = len(comparisons)
        raise too_large(f"The condition has {count} comparisons, and at most {MOST_COMPARISONS} are allowed.")
    count = sum(len(one.value) for one in comparisons if isinstance(one.value, tuple))
    if count > MOST_VALUES:
        raise too_large(f"The condition lists {count} values, and at most {MOST_VALUES} are allowed.")


def check_comparison(comparison: Comparison, columns: Mapping[str, str | None]) -> Comparison:
    """The comparison with the column's own name and with values of its type."""
    names = {name.lower(): name for name in columns if name.lower() not in METADATA_COLUMNS}
    column = names.get(comparison.column.lower())
    if column is None:
        raise _unknown_column(comparison.column, names)
    stored = columns[column]
    if comparison.operator is Operator.IS_NULL or stored is None:
        return replace(comparison, column=column)
    kind = find_stored_type(stored)
    if kind is None:
        what = f"`{column}` has the type {stored}, which a condition cannot compare."
        raise CallError(what, remedy="Compare another column, or use only is_null.", slug="filter-type")
    values = tuple(_check_value(value, column, kind) for value in comparison.values)
    return replace(
        comparison, column=column, value=values if isinstance(comparison.value, tuple) else values[0]
    )


def too_large(what: str) -> CallError:
    return CallError(what, remedy="Name a range instead, or split the call.", slug="filter-too-large")


def _check(condition: Condition, columns: Mapping[str, str | None]) -> Condition:
    match condition:
        case Comparison():
            return check_comparison(condition, columns)
        case Negation(part=part):
            return Negation(part=_check(part, columns))
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return replace(condition, parts=tuple(_check(part, columns) for part in parts))


def _check_value(value: Scalar, column: str, kind: ColumnType) -> Scalar:
    if kind.name is TypeName.DOUBLE and str(value) in _NOT_FINITE:
        return float(str(value))
    try:
        return fit_value(value, kind)
    except (ValueError, ArithmeticError):
        shown = literal(value)
        shown = shown if len(shown) <= _SHOWN_LETTERS else shown[:_SHOWN_LETTERS] + "..."
        what = f"`{column}` has the type {kind}, and {shown} is not a value of that type."
        raise CallError(what, remedy=f"Compare it with {EXPECTED[kind.name]}.", slug="filter-type") from None


def _unknown_column(column: str, names: Mapping[str, str]) -> CallError:
    if column.lower() in METADATA_COLUMNS:
        what = f"`{column}` is maintained by Strandline, and a condition cannot use it."
    else:
        what = f"There is no column `{column[:_SHOWN_LETTERS]}`."
    close = get_close_matches(column[:_SHOWN_LETTERS].lower(), names, 1)
    remedy = (
        f"Did you mean `{names[close[0]]}`?" if close else f"The columns are {', '.join(names.values())}."
    )
    return CallError(what, remedy=remedy, slug="unknown-column")
