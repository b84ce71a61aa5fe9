"""Pieces of DataFusion's SQL, built as trees, so that nothing is quoted or bracketed by hand."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from .types import BIGINT, DOUBLE, TIMESTAMP, SparkType

_WIDE = 76
"""Digits of DataFusion's widest decimal: room for every intermediate result of decimals that Spark can hold.
"""
_INSTANT = 'Timestamp(Microsecond, Some("UTC"))'


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression for DataFusion and the type that Spark gives it; None if that is unknown."""

    node: exp.Expression
    type: SparkType | None
    literal: object = None
    """The value of a literal in the query: an int, a Decimal or a str."""


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def text(value: str) -> exp.Expression:
    return exp.Literal.string(value)


def number(value: int) -> exp.Expression:
    return exp.Neg(this=number(-value)) if value < 0 else exp.Literal.number(value)


def null_boolean() -> exp.Expression:
    return plain_cast(exp.Null(), "BOOLEAN")


def plain_cast(node: exp.Expression, spelt: str, *, strict: bool = True) -> exp.Expression:
    kind = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=spelt)
    return (exp.Cast if strict else exp.TryCast)(this=node.copy(), to=kind)


def as_type(node: exp.Expression, kind: SparkType, *, strict: bool = True) -> exp.Expression:
    """DataFusion's own cast. Overflow and values that do not fit are errors in it, as in Spark."""
    if kind == TIMESTAMP:
        return call("arrow_cast" if strict else "arrow_try_cast", node, text(_INSTANT))
    spelt = kind.in_datafusion
    assert spelt is not None
    return plain_cast(node, spelt, strict=strict)


def wide(node: exp.Expression, scale: int) -> exp.Expression:
    return plain_cast(node, f"DECIMAL({_WIDE}, {scale})")


def operation(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.Paren(this=kind(this=left.copy(), expression=right.copy()))


def choose(
    *pairs: tuple[exp.Expression, exp.Expression], otherwise: exp.Expression | None = None
) -> exp.Expression:
    ifs = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in pairs]
    return exp.Case(ifs=ifs, default=otherwise.copy() if otherwise is not None else None)


def not_a_number() -> exp.Expression:
    return plain_cast(text("NaN"), "DOUBLE")


def canonical(value: Typed) -> exp.Expression:
    """A number that compares and sorts as in Spark: NaN equals itself and is the greatest, -0.0 equals 0.0.

    DataFusion distinguishes -0.0 from 0.0 when it sorts. It takes a NaN with a sign bit (infinity minus
    infinity) for the smallest number.
    """
    if value.type is None or not value.type.is_floating or value.literal is not None:
        return value.node
    zero = operation(exp.EQ, value.node, number(0))
    return choose(
        (call("isnan", value.node), not_a_number()), (zero, as_type(number(0), DOUBLE)), otherwise=value.node
    )


def same_nan(value: Typed) -> exp.Expression:
    """The same for a value that is shown: -0.0 stays as it is."""
    if value.type is None or not value.type.is_floating:
        return value.node
    return choose((call("isnan", value.node), not_a_number()), otherwise=value.node)


def not_zero(value: Typed) -> exp.Expression:
    """A divisor. Zero is an error in Spark, while DataFusion divides floating-point numbers by it."""
    if value.literal:
        return value.node
    zero = operation(exp.EQ, value.node, number(0))
    failing = operation(exp.Div, number(1), as_type(as_type(value.node, DOUBLE), BIGINT))
    return choose((zero, as_type(failing, DOUBLE)), otherwise=value.node)


def replace_arguments(node: exp.Expression, **arguments: Any) -> exp.Expression:
    copied = node.copy()
    for name, value in arguments.items():
        copied.set(name, value)
    return copied
