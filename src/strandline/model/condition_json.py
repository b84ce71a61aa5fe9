"""Conditions as YAML and JSON: `{quantity: {_gte: 10000}, _or: [{...}, {...}]}`. One reader for all uses.

A row filter is the form of a condition that joins comparisons by AND only. Its operators may be written
without `_`, and a bare value means `eq`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from .condition_checks import check_comparison, check_size, too_large
from .condition_text import show_double
from .conditions import (
    DEEPEST,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Negation,
    Operator,
    Scalar,
    Value,
    flatten,
)
from .errors import CallError
from .typed_values import show_instant

_ORDER = {operator: place for place, operator in enumerate(Operator)}
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_AND, _OR, _NOT = "_and", "_or", "_not"

JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMistake:
    """What is wrong with a condition, and where in it."""

    error: CallError
    path: JsonPath


def read_condition(
    value: object, columns: Mapping[str, str | None] | None = None
) -> tuple[Condition, tuple[ConditionMistake, ...]]:
    """The condition and every mistake in it. Wrong parts are left out.

    `columns` contains the type of each column, as for `check_condition`. None if they are not known yet.
    """
    reading = _Reading(columns=columns, mistakes=[])
    condition = AllOf(parts=tuple(reading.read_level(value, (), 1)))
    try:
        check_size(condition)
    except CallError as error:
        reading.mistakes.append(ConditionMistake(error=error, path=()))
    return condition, tuple(reading.mistakes)


def parse_condition(value: object, columns: Mapping[str, str | None] | None = None) -> Condition:
    """The condition. Raises the first mistake."""
    condition, mistakes = read_condition(value, columns)
    if mistakes:
        raise mistakes[0].error
    return condition


def from_row_filter(value: object) -> AllOf:
    """The inverse of `to_row_filter`, except for types that JSON lacks: `check_filter` restores those."""
    reading = _Reading(columns=None, mistakes=[], row_filter=True)
    parts = tuple(reading.read_level(value, (), 1))
    if reading.mistakes:
        raise reading.mistakes[0].error
    comparisons = flatten(AllOf(parts=parts))
    assert comparisons is not None
    return AllOf(parts=comparisons)


def to_row_filter(filter: AllOf) -> dict[str, object]:
    """The filter as JSON, independent of the order of its comparisons: `{"column": {"gte": 1, "lte": 2}}`.

    A JSON object cannot contain an operator twice for one column. Such a filter is `{"and": [{...}, {...}]}`.
    """
    layers: list[dict[str, Any]] = [{}]
    comparisons = flatten(filter)
    assert comparisons is not None, "a row filter joins comparisons by AND only"
    for one in sorted(
        comparisons, key=lambda c: (c.column, _ORDER[c.operator], json.dumps(to_plain(c.value)))
    ):
        layer = next((layer for layer in layers if one.operator not in layer.get(one.column, {})), None)
        if layer is None:
            layers.append(layer := {})
        layer.setdefault(one.column, {})[str(one.operator)] = to_plain(one.value)
    return layers[0] if len(layers) == 1 else {"and": layers}


def condition_to_json(condition: Condition) -> dict[str, object]:
    """The inverse of `parse_condition`, except for types that JSON lacks."""
    match condition:
        case Comparison(column=column, operator=operator, value=value):
            return {column: {f"_{operator}": to_plain(value)}}
        case Negation(part=part):
            return {_NOT: condition_to_json(part)}
        case AnyOf(parts=parts):
            return {_OR: [condition_to_json(part) for part in parts]}
        case AllOf(parts=(part,)):
            return condition_to_json(part)
        case AllOf(parts=parts):
            return {_AND: [condition_to_json(part) for part in parts]} if parts else {}


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
        case float():
            return show_double(value)
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One reading of a condition, which collects its mistakes."""

    columns: Mapping[str, str | None] | None
    mistakes: list[ConditionMistake]
    row_filter: bool = False

    def read_level(self, value: object, path: JsonPath, depth: int) -> Iterator[Condition]:
        """The conditions of one object. All of them must hold."""
        if depth > DEEPEST:
            self.add(too_large(f"The {self.noun} is more than {DEEPEST} deep."), path)
        elif not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            where = f"A part of `{_last_name(path)}`" if path else f"The {self.noun}"
            self.add(self.unknown(f"{where} is {_kind(value)}, not an object of columns."), path)
        else:
            for name, content in value.items():
                yield from self.read_entry(name, content, (*path, name), depth)

    def read_entry(self, name: str, content: object, path: JsonPath, depth: int) -> Iterator[Condition]:
        joined = name
        if self.row_filter:  # a column is never compared with a list, so a column may be called `and`
            joined = _AND if name in ("and", _AND) and isinstance(content, list) else ""
            if name == _OR and isinstance(content, list):
                joined = _OR
        match joined:
            case "_or" if self.row_filter:
                self.add(self.unknown("`_or` cannot be used: a row filter joins comparisons by AND."), path)
            case "_and":
                yield AllOf(parts=tuple(self.read_parts(content, path, depth)))
            case "_or":
                yield AnyOf(parts=tuple(self.read_parts(content, path, depth)))
            case "_not":
                yield Negation(part=_join(self.read_level(content, path, depth + 1)))
            case _:
                yield from self.read_column(name, content, path)

    def read_parts(self, content: object, path: JsonPath, depth: int) -> Iterator[Condition]:
        if not isinstance(content, list | tuple):
            what = f"`{path[-1]}` needs a list, and here it has {_kind(content)}."
            self.add(self.unknown(what), path)
            return
        for place, part in enumerate(content):
            yield _join(self.read_level(part, (*path, place), depth + 1))

    def read_column(self, column: str, condition: object, path: JsonPath) -> Iterator[Comparison]:
        if not isinstance(condition, Mapping):
            if not self.row_filter:
                what = f"`{column}` has {_kind(condition)}, not an object of operators."
                self.add(self.unknown(what), path)
                return
            condition = {Operator.EQ: condition}
        if not condition:
            self.add(self.unknown(f"The {self.noun} on `{column}` is empty."), path)
        for word, operand in condition.items():
            try:
                comparison = self.read_comparison(column, str(word), operand)
                if self.columns is not None:
                    comparison = check_comparison(comparison, self.columns)
            except CallError as error:
                self.add(error, (*path, str(word)))
            else:
                yield comparison

    def read_comparison(self, column: str, word: str, operand: object) -> Comparison:
        name = word.removeprefix("_")
        if name not in _ORDER or not (self.row_filter or word.startswith("_")):
            near = get_close_matches(word, [f"{self.prefix}{o}" for o in Operator], 1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise self.unknown(f"`{word}` is not an operator ({self.noun} on `{column}`).{hint}")
        operator = Operator(name)
        shown = f"{self.prefix}{operator}"
        match operator, operand:
            case ((Operator.IN | Operator.NIN), list() | tuple()):
                values = tuple(self.read_scalar(column, shown, one) for one in operand)
                return Comparison(column=column, operator=operator, value=values)
            case Operator.IS_NULL, bool():
                return Comparison(column=column, operator=operator, value=operand)
            case ((Operator.IN | Operator.NIN | Operator.IS_NULL), _):
                expected = "true or false" if operator is Operator.IS_NULL else "a list"
                raise self.unknown(
                    f"`{shown}` needs {expected}, and here it has {_kind(operand)}"
                    f" ({self.noun} on `{column}`)."
                )
            case _:
                value = self.read_scalar(column, shown, operand)
                return Comparison(column=column, operator=operator, value=value)

    def read_scalar(self, column: str, operator: str, value: object) -> Scalar:
        if not isinstance(value, Scalar):
            hint = f", which nothing equals: use {self.prefix}is_null" if value is None else ""
            raise self.unknown(f"`{operator}` cannot compare `{column}` with {_kind(value)}{hint}.")
        # YAML and Python read NaN and Infinity as numbers. JSON has only their texts, so they are one value.
        return show_double(value) if isinstance(value, float) else value

    def add(self, error: CallError, path: JsonPath) -> None:
        self.mistakes.append(ConditionMistake(error=error, path=path))

    def unknown(self, what: str) -> CallError:
        operators = ", ".join(f"{self.prefix}{operator}" for operator in Operator)
        if self.row_filter:
            example = '{"column": {"gte": 1, "lte": 2}}'
            remedy = f"Write {example}; the operators are {operators}, and all must hold."
        else:
            example = '{"column": {"_gte": 1, "_lte": 2}}'
            remedy = f"Write {example}; the operators are {operators}; join by _and, _or and _not."
        return CallError(what, remedy=remedy, slug="filter-unknown")

    @property
    def noun(self) -> str:
        return "filter" if self.row_filter else "condition"

    @property
    def prefix(self) -> str:
        return "" if self.row_filter else "_"


def _join(parts: Iterator[Condition]) -> Condition:
    conditions = tuple(parts)
    return conditions[0] if len(conditions) == 1 else AllOf(parts=conditions)


def _last_name(path: JsonPath) -> str:
    return next((str(step) for step in reversed(path) if isinstance(step, str)), "")


def _kind(value: object) -> str:
    """The JSON type of a value. Never the value itself, which may be long."""
    return _KINDS.get(type(value), type(value).__name__)
