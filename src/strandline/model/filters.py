"""Row filters: comparisons of columns with values, all of which must hold. Their JSON, check and text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from .columns import METADATA_COLUMNS, ColumnType, quote
from .errors import CallError
from .typed_values import EXPECTED, find_stored_type, fit_value, show_instant
from .typed_values import Scalar as Scalar  # re-exported: callers need it to make comparisons

MOST_COMPARISONS = 100
MOST_VALUES = 10_000
"""The limit for one `in` or `nin`: each value becomes a literal of the compiled condition."""


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


Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`value` is a tuple for `in` and `nin`, a bool for `is_null`, and one value for all other operators."""

    column: str
    operator: Operator
    value: Value

    @property
    def values(self) -> tuple[Scalar, ...]:
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which every comparison is true. Without comparisons, every row."""

    comparisons: tuple[Comparison, ...]


EVERY_ROW = Filter(comparisons=())

_ORDER = {operator: place for place, operator in enumerate(Operator)}
_SYMBOLS = {
    Operator.EQ: "=",
    Operator.NEQ: "<>",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
    Operator.IN: "IN",
    Operator.NIN: "NOT IN",
}
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_SHOWN_VALUES = 5
_SHOWN_LETTERS = 60


def to_row_filter(filter: Filter) -> dict[str, object]:
    """The filter as JSON, independent of the order of its comparisons: `{"column": {"gte": 1, "lte": 2}}`.

    A JSON object cannot contain an operator twice for one column. Such a filter is `{"and": [{...}, {...}]}`.
    """
    layers: list[dict[str, Any]] = [{}]
    for one in sorted(
        filter.comparisons, key=lambda c: (c.column, _ORDER[c.operator], json.dumps(to_plain(c.value)))
    ):
        layer = next((layer for layer in layers if one.operator not in layer.get(one.column, {})), None)
        if layer is None:
            layers.append(layer := {})
        layer.setdefault(one.column, {})[str(one.operator)] = to_plain(one.value)
    return layers[0] if len(layers) == 1 else {"and": layers}


def from_row_filter(value: object) -> Filter:
    """The inverse of `to_row_filter`, except for types that JSON lacks.

    `check_filter` restores those from the columns. An operator may begin with `_`, and a bare value means
    `eq`.
    """
    comparisons: list[Comparison] = []
    for name, content in _items(value, "The filter"):
        # A column is never compared with a bare list, so a column called `and` is still a column.
        several = name in ("and", "_and") and isinstance(content, list)
        pairs = (
            [pair for part in content for pair in _items(part, f"A part of `{name}`")]
            if several
            else [(name, content)]
        )
        comparisons += [
            comparison for column, condition in pairs for comparison in _read_column(column, condition)
        ]
    return Filter(comparisons=tuple(comparisons))


def check_filter(filter: Filter, columns: Mapping[str, str]) -> Filter:
    """The filter with the columns' own names and with values of their types.

    `columns` contains the type of each column as Spark or Delta spells it.
    """
    if len(filter.comparisons) > MOST_COMPARISONS:
        count = len(filter.comparisons)
        raise _too_large(f"The filter has {count} comparisons, and at most {MOST_COMPARISONS} are allowed.")
    names = {name.lower(): name for name in columns if name.lower() not in METADATA_COLUMNS}
    return Filter(comparisons=tuple(_check(comparison, columns, names) for comparison in filter.comparisons))


def describe(filter: Filter) -> str:
    """The filter as people read it. A long list is shortened."""
    by_column: dict[str, list[Comparison]] = {}
    for comparison in filter.comparisons:
        by_column.setdefault(comparison.column, []).append(comparison)
    return (
        " AND ".join(
            text for column, comparisons in by_column.items() for text in _describe(column, comparisons)
        )
        or "every row"
    )


def to_plain(value: Value) -> object:
    """A value as JSON stores it: instants, dates and decimals as text."""
    match value:
        case tuple():
            return [to_plain(one) for one in value]
        case datetime():
            return show_instant(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return value


def _items(value: object, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _unknown(f"{what} is {_kind(value)}, not an object of columns.")
    return list(value.items())


def _read_column(column: str, condition: object) -> Iterator[Comparison]:
    if not isinstance(condition, Mapping):
        condition = {Operator.EQ: condition}
    if not condition:
        raise _unknown(f"The filter on `{column}` is empty.")
    for word, operand in condition.items():
        yield _read_comparison(column, str(word), operand)


def _read_comparison(column: str, word: str, operand: object) -> Comparison:
    name = word.removeprefix("_")
    if name not in _ORDER:
        raise _unknown(f"`{word}` is not an operator (filter on `{column}`).")
    operator = Operator(name)
    match operator, operand:
        case ((Operator.IN | Operator.NIN), list() | tuple()):
            return Comparison(
                column=column,
                operator=operator,
                value=tuple(_read_scalar(column, operator, one) for one in operand),
            )
        case Operator.IS_NULL, bool():
            return Comparison(column=column, operator=operator, value=operand)
        case ((Operator.IN | Operator.NIN | Operator.IS_NULL), _):
            expected = "true or false" if operator is Operator.IS_NULL else "a list"
            raise _unknown(
                f"`{operator}` needs {expected}, and here it has {_kind(operand)} (filter on `{column}`)."
            )
        case _:
            return Comparison(column=column, operator=operator, value=_read_scalar(column, operator, operand))


def _read_scalar(column: str, operator: Operator, value: object) -> Scalar:
    if not isinstance(value, Scalar):
        hint = ", which nothing equals: use is_null" if value is None else ""
        raise _unknown(f"`{operator}` cannot compare `{column}` with {_kind(value)}{hint}.")
    return value


def _check(comparison: Comparison, columns: Mapping[str, str], names: Mapping[str, str]) -> Comparison:
    column = names.get(comparison.column.lower())
    if column is None:
        raise _unknown_column(comparison.column, names)
    if comparison.operator is Operator.IS_NULL:
        return replace(comparison, column=column)
    if len(comparison.values) > MOST_VALUES:
        count = len(comparison.values)
        raise _too_large(
            f"`{column}` is compared with {count} values, and at most {MOST_VALUES} are allowed."
        )
    kind = find_stored_type(columns[column])
    if kind is None:
        what = f"`{column}` has the type {columns[column]}, which a filter cannot compare."
        raise CallError(what, remedy="Filter on another column, or use only is_null.", slug="filter-type")
    values = tuple(_check_value(value, column, kind) for value in comparison.values)
    return replace(
        comparison, column=column, value=values if isinstance(comparison.value, tuple) else values[0]
    )


def _check_value(value: Scalar, column: str, kind: ColumnType) -> Scalar:
    try:
        return fit_value(value, kind)
    except (ValueError, ArithmeticError):
        shown = _literal(value)
        shown = shown if len(shown) <= _SHOWN_LETTERS else shown[:_SHOWN_LETTERS] + "..."
        what = f"`{column}` has the type {kind}, and {shown} is not a value of that type."
        raise CallError(what, remedy=f"Compare it with {EXPECTED[kind.name]}.", slug="filter-type") from None


def _describe(column: str, comparisons: list[Comparison]) -> Iterator[str]:
    name = column if column.isidentifier() else quote(column)
    value_by_operator = {comparison.operator: comparison.value for comparison in comparisons}
    if len(comparisons) == 2 and value_by_operator.keys() == {Operator.GTE, Operator.LTE}:
        low, high = (_operand(value_by_operator[operator]) for operator in (Operator.GTE, Operator.LTE))
        yield f"{name} between {low} and {high}"
        return
    for comparison in comparisons:
        if comparison.operator is Operator.IS_NULL:
            yield f"{name} IS NULL" if comparison.value else f"{name} IS NOT NULL"
        else:
            yield f"{name} {_SYMBOLS[comparison.operator]} {_operand(comparison.value)}"


def _operand(value: Value) -> str:
    if not isinstance(value, tuple):
        return _literal(value)
    more = [f"... {len(value) - _SHOWN_VALUES} more"] if len(value) > _SHOWN_VALUES else []
    return f"({', '.join([_literal(one) for one in value[:_SHOWN_VALUES]] + more)})"


def _literal(value: Scalar) -> str:
    match value:
        case bool():
            return "true" if value else "false"
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


def _kind(value: object) -> str:
    """The JSON type of a value. Never the value itself, which may be long."""
    return _KINDS.get(type(value), type(value).__name__)


def _unknown(what: str) -> CallError:
    example = '{"column": {"gte": 1, "lte": 2}}'
    remedy = f"Write {example}; the operators are {', '.join(Operator)}, and all must hold."
    return CallError(what, remedy=remedy, slug="filter-unknown")


def _unknown_column(column: str, names: Mapping[str, str]) -> CallError:
    if column.lower() in METADATA_COLUMNS:
        what = f"`{column}` is maintained by Strandline, and a filter cannot use it."
    else:
        what = f"There is no column `{column[:_SHOWN_LETTERS]}`."
    close = get_close_matches(column[:_SHOWN_LETTERS].lower(), names, 1)
    remedy = (
        f"Did you mean `{names[close[0]]}`?" if close else f"The columns are {', '.join(names.values())}."
    )
    return CallError(what, remedy=remedy, slug="unknown-column")


def _too_large(what: str) -> CallError:
    return CallError(what, remedy="Name a range instead, or split the call.", slug="filter-too-large")
