"""Spark's types, and the common type of two of them (ANSI mode)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_PRECISION = 38
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DELTA_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_SPELT = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
}
INTEGERS = tuple(_DIGITS)


@dataclass(frozen=True, slots=True)
class SparkType:
    """A Spark type. `void` is the type of NULL and `interval` stands for every interval.

    The fields of a struct are known; nothing is known of what arrays and maps contain.
    """

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, "SparkType"], ...] = ()

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_floating or self.is_decimal

    @property
    def is_scalar(self) -> bool:
        return self.is_number or self.name in ("string", "binary", "boolean", "date", "timestamp", "void")

    @property
    def as_decimal(self) -> "SparkType":
        return self if self.is_decimal else SparkType("decimal", _DIGITS[self.name], 0)

    @property
    def in_datafusion(self) -> str | None:
        """DataFusion's name of the type. None if it has none."""
        return f"DECIMAL({self.precision}, {self.scale})" if self.is_decimal else _SPELT.get(self.name)


Columns = Sequence[tuple[str, SparkType | None]]
"""The columns of a relation, in order. A type of None is unknown."""

TINYINT, SMALLINT, INT, BIGINT = (SparkType(name) for name in INTEGERS)
FLOAT, DOUBLE = SparkType("float"), SparkType("double")
STRING, BINARY, BOOLEAN, DATE, TIMESTAMP = (
    SparkType(n) for n in ("string", "binary", "boolean", "date", "timestamp")
)
VOID, INTERVAL = SparkType("void"), SparkType("interval")


def decimal(precision: int, scale: int) -> SparkType:
    return SparkType("decimal", precision, scale)


def bounded(precision: int, scale: int) -> SparkType:
    """The decimal type that Spark gives to a result that needs these digits.

    Beyond 38 digits it reduces the scale, but not below 6.
    """
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, 6)))


def delta_type(spelt: object) -> SparkType | None:
    """A type as Delta's schema spells it (in JSON)."""
    if isinstance(spelt, Mapping):
        parts: Mapping[str, Any] = spelt
        if parts["type"] != "struct":
            return SparkType(str(parts["type"]))
        fields = [(f["name"], delta_type(f["type"])) for f in parts["fields"]]
        return SparkType("struct", fields=tuple((name, kind) for name, kind in fields if kind is not None))
    if matched := _DECIMAL.fullmatch(str(spelt)):
        return decimal(int(matched[1]), int(matched[2]))
    return SparkType(_DELTA_NAMES.get(str(spelt), str(spelt)))


def widest(left: SparkType, right: SparkType) -> SparkType | None:
    """The type that holds both without changing a value, as Spark chooses it.

    None if Spark refuses, or if we leave the case to DataFusion.
    """
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda t: _DIGITS[t.name])
    if left.is_number and right.is_number:
        if {left, right} == {FLOAT, DOUBLE}:
            return DOUBLE
        if left.is_floating or right.is_floating:
            return None if FLOAT in (left, right) else DOUBLE
        return _wider_decimal(left.as_decimal, right.as_decimal)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return None


def compared_as(left: SparkType, right: SparkType) -> SparkType | None:
    """The type in which two values are compared.

    A text takes the other side's type, with bigint for any integer.
    """
    if (common := widest(left, right)) is not None:
        return common
    for text, other in ((left, right), (right, left)):
        if text == STRING and other.name in (*INTEGERS, "double", "decimal", "date", "timestamp", "boolean"):
            return BIGINT if other.is_integer else DOUBLE if other.is_number else other
    return None


def _wider_decimal(left: SparkType, right: SparkType) -> SparkType | None:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return decimal(precision, scale) if precision <= MAX_PRECISION else None
