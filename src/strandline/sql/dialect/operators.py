"""Arithmetic and comparisons with Spark's types, rounding and errors."""

from sqlglot import exp

from .building import Typed, as_type, canonical, not_zero, operation, wide
from .casts import cast, literal_decimal
from .types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTERVAL,
    TIMESTAMP,
    SparkType,
    bounded,
    compared_as,
    decimal,
    widest,
)

_COMPARED = ("string", "binary", "boolean", "date", "timestamp", "void")


def arithmetic(kind: type[exp.Binary], left: Typed, right: Typed) -> Typed | None:
    """`+ - * / %` of numbers. None for what is left as written."""
    if left.type is None or right.type is None or not (left.type.is_number and right.type.is_number):
        return None
    if kind is exp.Div and left.type.is_integer and right.type.is_integer:
        return _floating(kind, left, right, DOUBLE)
    if left.type.is_floating or right.type.is_floating:
        common = widest(left.type, right.type)
        return _floating(kind, left, right, common) if common is not None else None
    if left.type.is_integer and right.type.is_integer:
        return _integers(kind, left, right)
    return _decimals(kind, left, right)


def _floating(kind: type[exp.Binary], left: Typed, right: Typed, common: SparkType) -> Typed | None:
    if common == FLOAT:
        return None
    sides = [cast(side, common) for side in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    divisor = Typed(sides[1], common, right.literal)
    return Typed(
        operation(kind, sides[0], not_zero(divisor) if kind in (exp.Div, exp.Mod) else sides[1]), common
    )


def _integers(kind: type[exp.Binary], left: Typed, right: Typed) -> Typed | None:
    """Computed in a type that cannot overflow, then cast back.

    DataFusion's integers wrap around, its casts fail instead.
    """
    assert left.type is not None
    assert right.type is not None
    common = widest(left.type, right.type)
    assert common is not None
    if kind is exp.Mod:
        return Typed(operation(kind, as_type(left.node, common), as_type(right.node, common)), common)
    roomy = decimal(20, 0) if common == BIGINT else BIGINT
    return Typed(
        as_type(operation(kind, as_type(left.node, roomy), as_type(right.node, roomy)), common), common
    )


def _decimals(kind: type[exp.Binary], left: Typed, right: Typed) -> Typed | None:
    one, two = literal_decimal(left), literal_decimal(right)
    if one is None or two is None:
        return None
    scale = max(one.scale, two.scale)
    whole = max(one.precision - one.scale, two.precision - two.scale)
    if kind is exp.Div:
        return divide(as_type(left.node, one), one, as_type(right.node, two), two)
    if kind is exp.Mod:
        result = bounded(min(one.precision - one.scale, two.precision - two.scale) + scale, scale)
    elif kind is exp.Mul:
        result = bounded(one.precision + two.precision + 1, one.scale + two.scale)
    else:
        result = bounded(whole + scale + 1, scale)
    return Typed(
        as_type(operation(kind, wide(left.node, one.scale), wide(right.node, two.scale)), result), result
    )


def divide(
    left: exp.Expression,
    one: SparkType,
    right: exp.Expression,
    two: SparkType,
    result: SparkType | None = None,
) -> Typed:
    """The quotient of decimals.

    DataFusion cuts off digits, so one digit more is kept to round by in the cast.
    """
    scale = max(6, one.scale + two.precision + 1)
    kind = result or bounded(one.precision - one.scale + two.scale + scale, scale)
    digits = max(
        kind.scale + 1 - 4, one.scale, 0
    )  # DataFusion's quotient has four digits more than the dividend
    return Typed(as_type(operation(exp.Div, wide(left, digits), as_type(right, two)), kind), kind)


def comparison(kind: type[exp.Binary], left: Typed, right: Typed) -> Typed | None:
    """`= <> < <= > >=` and their null-safe forms, in the type that Spark compares both sides in."""
    common = comparable(left, right)
    if common is None:
        return None
    sides = [as_compared(side, common) for side in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return Typed(exp.Paren(this=kind(this=sides[0].copy(), expression=sides[1].copy())), BOOLEAN)


def comparable(left: Typed, right: Typed) -> SparkType | None:
    if left.type is None or right.type is None:
        return None
    one, two = left.type, right.type
    if one.is_decimal and two.is_integer and (fitted := literal_decimal(right)):
        two = fitted
    if two.is_decimal and one.is_integer and (fitted := literal_decimal(left)):
        one = fitted
    common = compared_as(one, two)
    return common if common is not None and (common.is_number or common.name in _COMPARED) else None


def as_compared(value: Typed, common: SparkType) -> exp.Expression | None:
    if value.type is not None and value.type.is_integer and common.is_integer:
        # DataFusion compares integers of any width. Without a cast it can use a file's statistics.
        return value.node
    node = cast(value, common)
    return None if node is None else canonical(Typed(node, common, value.literal))


def shifted(kind: type[exp.Binary], left: Typed, right: Typed) -> Typed | None:
    """A date or instant plus or minus a literal interval or days; the time between two instants."""
    if left.type is None or right.type is None:
        return None
    if left.type.name == right.type.name == "timestamp" and kind is exp.Sub:
        return Typed(operation(kind, left.node, right.node), INTERVAL)
    if right.type == INTERVAL and isinstance(right.literal, str) and left.type in (DATE, TIMESTAMP):
        days = right.literal in ("year", "month", "week", "day")
        result = DATE if left.type == DATE and days else TIMESTAMP
        node = cast(left, result)
        assert node is not None
        return Typed(operation(kind, node, right.node), result)
    if left.type == DATE and right.type.is_integer and kind in (exp.Add, exp.Sub):
        return Typed(operation(kind, left.node, as_type(right.node, BIGINT)), DATE)
    return None
