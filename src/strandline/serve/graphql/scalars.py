"""The scalars of the schema. Values inside are those of JSON documents: see `model.json_values`."""

import re
from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLInt,
    GraphQLScalarType,
    GraphQLString,
    ValueNode,
    value_from_ast_untyped,
)

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def _read_whole(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise GraphQLError("BigInt needs a whole number of 64 bits, as a string.")
    return value


def _read_decimal(value: Any) -> object:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise GraphQLError("Decimal needs a number, as a string.")


def _read_double(value: Any) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if value in _NOT_FINITE:
        return value
    raise GraphQLError('Double needs a number, "NaN", "Infinity" or "-Infinity".')


def _read_text(value: Any) -> str:
    """A date or an instant, which is read with the condition that it stands in."""
    if isinstance(value, str):
        return value
    raise GraphQLError("It needs text, such as 2024-01-13 or 2024-01-13T08:30:00Z.")


def _literal(read: Any) -> Any:
    def read_literal(node: ValueNode, _variables: Mapping[str, Any] | None = None) -> object:
        return read(value_from_ast_untyped(node))

    return read_literal


def _as_text(value: Any) -> str:
    return str(value)


def _as_it_is(value: Any) -> Any:
    return value


BIG_INT = GraphQLScalarType(
    "BigInt",
    serialize=_as_text,
    parse_value=_read_whole,
    parse_literal=_literal(_read_whole),
    description="A whole number of 64 bits, as a string.",
)
DECIMAL = GraphQLScalarType(
    "Decimal",
    serialize=_as_text,
    parse_value=_read_decimal,
    parse_literal=_literal(_read_decimal),
    description="An exact number, as a string at its scale.",
)
TIMESTAMP = GraphQLScalarType(
    "Timestamp",
    serialize=_as_it_is,
    parse_value=_read_text,
    parse_literal=_literal(_read_text),
    description="An instant in UTC, such as 2024-01-13T08:30:00.000000Z.",
)
DATE = GraphQLScalarType(
    "Date",
    serialize=_as_it_is,
    parse_value=_read_text,
    parse_literal=_literal(_read_text),
    description="A date, such as 2024-01-13.",
)
DOUBLE = GraphQLScalarType(
    "Double",
    serialize=_as_it_is,
    parse_value=_read_double,
    parse_literal=_literal(_read_double),
    description='A number, "NaN", "Infinity" or "-Infinity".',
)
JSON = GraphQLScalarType("JSON", serialize=_as_it_is, description="A list, a map or a struct.")

_BY_TYPE = {
    "byte": GraphQLInt,
    "short": GraphQLInt,
    "integer": GraphQLInt,
    "long": BIG_INT,
    "float": DOUBLE,
    "double": DOUBLE,
    "boolean": GraphQLBoolean,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
    "array": JSON,
    "map": JSON,
    "struct": JSON,
    "variant": JSON,
}


def find_scalar(type_: str) -> GraphQLScalarType:
    """The scalar for a type as Delta spells it."""
    return DECIMAL if type_.startswith("decimal") else _BY_TYPE.get(type_, GraphQLString)


WRITTEN_AS_TEXT = frozenset({BIG_INT.name, DECIMAL.name, GraphQLString.name})
"""Scalars whose values a message writes as strings, whatever they are in the row."""
