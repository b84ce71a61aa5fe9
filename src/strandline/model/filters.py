"""Row filters: columns compared with values, all of which must hold. Their JSON, their check and their text."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from .columns import METADATA_COLUMNS, ColumnType, TypeName, find_type, quote
from .errors import CallError

MOST_COMPARISONS = 100
MOST_VALUES = 10_000
"""In one `in` or `nin`: each is a literal of the compiled condition."""


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


Scalar = bool | int | float | str | Decimal | date
"""A datetime is a date to Python, and is meant too."""
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A tuple of values for `in` and `nin`, a bool for `is_null`, one value for all others."""

    column: str
    operator: Operator
    value: Value

    @property
    def values(self) -> tuple[Scalar, ...]:
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which every comparison is true; without comparisons, every row."""

    comparisons: tuple[Comparison, ...]


_ORDER = {operator: place for place, operator in enumerate(Operator)}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(_DATE.pattern + r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_SAME_TYPE = {"byte": "int", "tinyint": "int", "short": "int", "smallint": "int", "integer": "int", "long": "bigint"}
_WANTED = {
    TypeName.BOOLEAN: "true or false",
    TypeName.INT: "a whole number of 32 bits",
    TypeName.BIGINT: "a whole number of 64 bits",
    TypeName.DOUBLE: "a number",
    TypeName.DECIMAL: "a number with no more digits than the column has",
    TypeName.STRING: "text",
    TypeName.DATE: "a date such as '2024-01-13'",
    TypeName.TIMESTAMP: "an instant such as '2024-01-13T08:30:00Z'",
}
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
    """The filter as JSON, the same whatever the order of its comparisons: `{"column": {"gte": 1, "lte": 2}}`.

    Where a column has an operator twice, which an object cannot say, it is `{"and": [{...}, {...}]}`.
    """
    layers: list[dict[str, Any]] = [{}]
    for said in sorted(filter.comparisons, key=lambda c: (c.column, _ORDER[c.operator], json.dumps(_to_json(c.value)))):
        layer = next((layer for layer in layers if said.operator not in layer.get(said.column, {})), None)
        if layer is None:
            layers.append(layer := {})
        layer.setdefault(said.column, {})[str(said.operator)] = _to_json(said.value)
    return layers[0] if len(layers) == 1 else {"and": layers}


def from_row_filter(value: object) -> Filter:
    """The opposite of `to_row_filter`, up to types that JSON lacks: `check_filter` knows them from the columns.

    An operator may begin with `_`, and a bare value means `eq`.
    """
    comparisons: list[Comparison] = []
    for name, said in _items(value, "The filter"):
        # A column is never compared with a bare list, so a column called `and` stays a column.
        several = name in ("and", "_and") and isinstance(said, list)
        pairs = [pair for part in said for pair in _items(part, f"A part of `{name}`")] if several else [(name, said)]
        comparisons += [comparison for column, condition in pairs for comparison in _read_column(column, condition)]
    return Filter(comparisons=tuple(comparisons))


def check_filter(filter: Filter, columns: Mapping[str, str]) -> Filter:
    """The filter with the columns' own names and values of their types; `columns` says the type of each as Spark or Delta spells it."""
    if len(filter.comparisons) > MOST_COMPARISONS:
        raise _too_large(f"The filter has {len(filter.comparisons)} comparisons, and {MOST_COMPARISONS} is the most.")
    names = {name.lower(): name for name in columns if name.lower() not in METADATA_COLUMNS}
    return Filter(comparisons=tuple(_check(comparison, columns, names) for comparison in filter.comparisons))


def describe(filter: Filter) -> str:
    """The filter as people read it; a long list is cut short."""
    by_column: dict[str, list[Comparison]] = {}
    for comparison in filter.comparisons:
        by_column.setdefault(comparison.column, []).append(comparison)
    return " AND ".join(text for column, said in by_column.items() for text in _describe(column, said)) or "every row"


def parse_date(text: str) -> date:
    """`2024-01-13`. Raises ValueError for anything else."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def parse_instant(text: str) -> datetime:
    """ISO text in UTC, to the microsecond; without an offset it is UTC, without a time midnight.

    Raises ValueError for anything else, OverflowError where the offset leads out of the years 1 to 9999.
    """
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    return _utc(datetime.fromisoformat(text))


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _instant_text(value: datetime) -> str:
    return _utc(value).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _to_json(value: Value) -> object:
    match value:
        case tuple():
            return [_to_json(one) for one in value]
        case datetime():
            return _instant_text(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return value


def _items(value: object, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _unknown(f"{what} is {_kind(value)} and not an object of columns.")
    return list(value.items())


def _read_column(column: str, said: object) -> Iterator[Comparison]:
    if not isinstance(said, Mapping):
        said = {Operator.EQ: said}
    if not said:
        raise _unknown(f"The filter says nothing of `{column}`.")
    for word, operand in said.items():
        yield _read_comparison(column, str(word), operand)


def _read_comparison(column: str, word: str, operand: object) -> Comparison:
    spelt = word.removeprefix("_")
    if spelt not in _ORDER:
        raise _unknown(f"`{word}`, said of `{column}`, is no operator.")
    operator = Operator(spelt)
    match operator, operand:
        case ((Operator.IN | Operator.NIN), list() | tuple()):
            return Comparison(column=column, operator=operator, value=tuple(_read_scalar(column, operator, one) for one in operand))
        case Operator.IS_NULL, bool():
            return Comparison(column=column, operator=operator, value=operand)
        case ((Operator.IN | Operator.NIN | Operator.IS_NULL), _):
            wanted = "true or false" if operator is Operator.IS_NULL else "a list"
            raise _unknown(f"`{operator}` of `{column}` is {_kind(operand)} and not {wanted}.")
        case _:
            return Comparison(column=column, operator=operator, value=_read_scalar(column, operator, operand))


def _read_scalar(column: str, operator: Operator, value: object) -> Scalar:
    if not isinstance(value, Scalar):
        hint = ", which nothing equals: use is_null" if value is None else ""
        raise _unknown(f"`{operator}` of `{column}` is given {_kind(value)}{hint}.")
    return value


def _check(comparison: Comparison, columns: Mapping[str, str], names: Mapping[str, str]) -> Comparison:
    column = names.get(comparison.column.lower())
    if column is None:
        raise _unknown_column(comparison.column, names)
    if comparison.operator is Operator.IS_NULL:
        return replace(comparison, column=column)
    if len(comparison.values) > MOST_VALUES:
        raise _too_large(f"`{column}` is compared with {len(comparison.values)} values, and {MOST_VALUES} is the most.")
    kind = _find_type(columns[column])
    if kind is None:
        what = f"`{column}` is {columns[column]}, which a filter cannot compare."
        raise CallError(what, remedy="Filter on another column, or with is_null alone.", slug="filter-type")
    values = tuple(_check_value(value, column, kind) for value in comparison.values)
    return replace(comparison, column=column, value=values if isinstance(comparison.value, tuple) else values[0])


def _find_type(text: str) -> ColumnType | None:
    spelt = text.strip().lower()
    declared = find_type(_SAME_TYPE.get(spelt, spelt))
    return find_type(declared.stored) if declared else None


def _check_value(value: Scalar, column: str, kind: ColumnType) -> Scalar:
    try:
        return _as_type(value, kind)
    except (ValueError, ArithmeticError):
        shown = _literal(value)
        shown = shown if len(shown) <= _SHOWN_LETTERS else shown[:_SHOWN_LETTERS] + "..."
        what = f"`{column}` is {kind}, and {shown} is no value of it."
        raise CallError(what, remedy=f"Compare it with {_WANTED[kind.name]}.", slug="filter-type") from None


def _as_type(value: Scalar, kind: ColumnType) -> Scalar:
    """The value as one of the type, exactly (a double: the nearest). Raises ValueError or ArithmeticError when it is none."""
    match kind.name, value:
        case TypeName.BOOLEAN, bool():
            return value
        case _, bool():  # an int to Python, and none in a filter
            pass
        case TypeName.INT, int() if -(2**31) <= value < 2**31:
            return value
        case TypeName.BIGINT, int() if -(2**63) <= value < 2**63:
            return value
        case TypeName.DOUBLE, int() | float() | Decimal() if math.isfinite(number := float(value)):
            return number
        case TypeName.DECIMAL, int() | float() | Decimal() if math.isfinite(value):
            # The shortest text of a float is what was written: 0.1 in JSON is meant as 0.1.
            return _as_decimal(Decimal(repr(value) if isinstance(value, float) else value), kind)
        case TypeName.DECIMAL, str() if _NUMBER.fullmatch(value):
            return _as_decimal(Decimal(value), kind)
        case TypeName.STRING, str():
            value.encode()  # half of a surrogate pair, which JSON can say, is no text
            return value
        case TypeName.DATE, str():
            return parse_date(value)
        case TypeName.DATE, date() if not isinstance(value, datetime):
            return value
        case TypeName.TIMESTAMP, str():
            return parse_instant(value)
        case TypeName.TIMESTAMP, datetime():
            return _utc(value)
        case TypeName.TIMESTAMP, date():
            return datetime.combine(value, time(), UTC)
    raise ValueError(value)


def _as_decimal(value: Decimal, kind: ColumnType) -> Decimal:
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    return value.quantize(Decimal(1).scaleb(-kind.scale), context=exact)


def _describe(column: str, said: list[Comparison]) -> Iterator[str]:
    name = column if column.isidentifier() else quote(column)
    value_by_operator = {comparison.operator: comparison.value for comparison in said}
    if len(said) == 2 and value_by_operator.keys() == {Operator.GTE, Operator.LTE}:
        low, high = (_operand(value_by_operator[operator]) for operator in (Operator.GTE, Operator.LTE))
        yield f"{name} between {low} and {high}"
        return
    for comparison in said:
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
            return f"TIMESTAMP '{_instant_text(value)}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return format(value, "f")
        case _:
            return repr(value)


def _kind(value: object) -> str:
    """What JSON calls a value; never the value, which may be long."""
    return _KINDS.get(type(value), type(value).__name__)


def _unknown(what: str) -> CallError:
    remedy = f'Write {{"column": {{"gte": 1, "lte": 2}}}}; the operators are {", ".join(Operator)}, and all must hold.'
    return CallError(what, remedy=remedy, slug="filter-unknown")


def _unknown_column(column: str, names: Mapping[str, str]) -> CallError:
    if column.lower() in METADATA_COLUMNS:
        what = f"`{column}` is kept by Strandline and cannot be filtered on."
    else:
        what = f"There is no column `{column[:_SHOWN_LETTERS]}`."
    close = get_close_matches(column[:_SHOWN_LETTERS].lower(), names, 1)
    remedy = f"Did you mean `{names[close[0]]}`?" if close else f"The columns are {', '.join(names.values())}."
    return CallError(what, remedy=remedy, slug="unknown-column")


def _too_large(what: str) -> CallError:
    return CallError(what, remedy="Name a range instead, or give it in parts.", slug="filter-too-large")
