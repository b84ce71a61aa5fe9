"""Aggregates and window functions that give equal results on both engines."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlglot import exp

from .building import Typed, as_type, call, canonical, same_nan, wide
from .casts import cast
from .notes import Note, floating_order
from .operators import divide
from .types import BIGINT, BOOLEAN, DOUBLE, INT, MAX_PRECISION, SparkType, decimal

Around = Callable[[exp.Expression], exp.Expression]
"""Puts FILTER and OVER around a call: they belong to the aggregate itself, not to what is made of its result.
"""


class Aggregated(NamedTuple):
    value: Typed
    notes: tuple[Note, ...] = ()


RANKING = {
    "row_number": INT,
    "rank": INT,
    "dense_rank": INT,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
    "ntile": INT,
}
NEIGHBOURS = ("lag", "lead", "first_value", "last_value", "nth_value")
AGGREGATES = ("count", "sum", "avg", "mean", "min", "max", "bool_and", "bool_or", "median")


def aggregate(name: str, arguments: Sequence[Typed], distinct: bool, around: Around) -> Aggregated | None:
    """The call for an aggregate. None if it is not known to be equal for these types."""
    if name == "count":
        return _count(arguments, distinct, around)
    if len(arguments) != 1 or (kind := arguments[0].type) is None:
        return None
    value, single = arguments[0], arguments[0].node
    if name == "sum" and kind.is_number:
        return _sum(value, kind, distinct, around)
    if name in ("avg", "mean") and kind.is_number:
        return _average(value, kind, distinct, around)
    if name in ("min", "max") and kind.is_scalar and kind.name != "void":
        return Aggregated(Typed(around(_call(name, same_nan(value), distinct)), kind))
    if name in ("bool_and", "bool_or") and kind == BOOLEAN:
        return Aggregated(Typed(around(_call(name, single, distinct)), BOOLEAN))
    if name == "median" and kind.is_integer:
        return Aggregated(Typed(around(_call(name, as_type(single, DOUBLE), distinct)), DOUBLE))
    return None


def _call(name: str, argument: exp.Expression, distinct: bool) -> exp.Expression:
    return call(name, exp.Distinct(expressions=[argument.copy()]) if distinct else argument)


def _count(arguments: Sequence[Typed], distinct: bool, around: Around) -> Aggregated | None:
    if distinct and (len(arguments) != 1 or arguments[0].type is None or not arguments[0].type.is_scalar):
        return None
    if len(arguments) != 1:
        return None
    return Aggregated(Typed(around(_call("count", canonical(arguments[0]), distinct)), BIGINT))


def _sum(value: Typed, kind: SparkType, distinct: bool, around: Around) -> Aggregated:
    """The sum in a decimal that cannot overflow, then cast back, which fails where Spark fails.

    DataFusion's own sums wrap around.
    """
    if kind.is_integer:
        return Aggregated(
            Typed(
                as_type(around(_call("sum", as_type(value.node, decimal(20, 0)), distinct)), BIGINT), BIGINT
            )
        )
    if kind.is_decimal:
        result = decimal(min(kind.precision + 10, MAX_PRECISION), kind.scale)
        return Aggregated(
            Typed(as_type(around(_call("sum", _roomy(value.node, kind), distinct)), result), result)
        )
    argument = canonical(value) if distinct else as_type(value.node, DOUBLE)
    return Aggregated(Typed(around(_call("sum", argument, distinct)), DOUBLE), (floating_order("sum"),))


def _average(value: Typed, kind: SparkType, distinct: bool, around: Around) -> Aggregated:
    if kind.is_decimal:
        result = decimal(min(kind.precision + 4, MAX_PRECISION), min(kind.scale + 4, MAX_PRECISION))
        total = around(_call("sum", _roomy(value.node, kind), distinct))
        rows = call("nullif", around(_call("count", value.node, distinct)), exp.Literal.number(0))
        return Aggregated(divide(total, decimal(38, kind.scale), rows, decimal(20, 0), result))
    node = cast(value, DOUBLE)
    assert node is not None
    notes = () if kind.is_integer else (floating_order("avg"),)
    return Aggregated(Typed(around(_call("avg", node, distinct)), DOUBLE), notes)


def _roomy(node: exp.Expression, kind: SparkType) -> exp.Expression:
    """Room for a sum: decimals of at most 28 digits have ten to spare, wider ones are added with 76."""
    return as_type(node, kind) if kind.precision <= 28 else wide(node, kind.scale)
