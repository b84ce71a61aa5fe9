"""Casts that give equal results on both engines, some of them rewritten for that."""

import re
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from .building import Typed, as_type, call, choose, operation, text
from .types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, VOID, SparkType, decimal

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z?)?")
_INT = range(-(2**31), 2**31)
_BIGINT = range(-(2**63), 2**63)


def cast(value: Typed, target: SparkType, *, strict: bool = True) -> exp.Expression | None:
    """A value as another type, as Spark would cast it. None if the engines may give different results."""
    source = value.type
    if source is None:
        return None
    if source == target:
        return value.node
    if target.in_datafusion is None and target != TIMESTAMP:
        return None
    if source == VOID:
        return as_type(value.node, target, strict=strict)
    if source == STRING:
        return _from_text(value, target, strict)
    if source == TIMESTAMP:
        return (
            _instant_text(value.node)
            if target == STRING
            else as_type(value.node, DATE)
            if target == DATE
            else None
        )
    if source == DATE:
        return as_type(value.node, target) if target in (STRING, TIMESTAMP) else None
    if source == BOOLEAN:
        return as_type(value.node, target) if target == STRING or target.is_integer else None
    if source.is_decimal and target == DOUBLE:
        # DataFusion divides a rounded number by a power of ten, which rounds twice. Its parser rounds once,
        # as Spark does.
        return as_type(as_type(value.node, STRING), DOUBLE)
    if source.is_floating:
        return as_type(value.node, target, strict=strict) if target.is_integer or target == DOUBLE else None
    if source.is_number:
        allowed = (
            target.is_integer
            or target.is_decimal
            or target in (STRING, DOUBLE)
            or (target == BOOLEAN and source.is_integer)
        )
        return as_type(value.node, target, strict=strict) if allowed else None
    return None


def literal_number(spelt: str, *, negative: bool = False) -> Typed:
    """A number as Spark types it: int, bigint, then decimal.

    A decimal point makes a decimal, an exponent a double.
    """
    sign = "-" if negative else ""
    if "e" in spelt.lower():
        value = float(sign + spelt)
        return Typed(as_type(text(sign + spelt), DOUBLE), DOUBLE, value)
    exact = Decimal(sign + spelt)
    if exact == exact.to_integral_value() and "." not in spelt and int(exact) in _BIGINT:
        kind = INT if int(exact) in _INT else BIGINT
        node: exp.Expression = exp.Literal.number(spelt)
        return Typed(exp.Neg(this=node) if negative else node, kind, int(exact))
    digits, scale = len(exact.as_tuple().digits), max(0, -int(exact.as_tuple().exponent))
    kind = decimal(max(digits, scale), scale)
    return Typed(as_type(text(sign + spelt), kind), kind, exact)


def literal_decimal(value: Typed) -> SparkType | None:
    """The decimal type of a number beside a decimal. An integer literal has just its own digits."""
    if isinstance(value.literal, int) and value.type is not None and value.type.is_integer:
        return decimal(len(str(abs(value.literal))), 0)
    return value.type.as_decimal if value.type is not None and not value.type.is_floating else None


def _from_text(value: Typed, target: SparkType, strict: bool) -> exp.Expression | None:
    if target in (DATE, TIMESTAMP):
        return as_type(value.node, target, strict=strict) if _is_plain_time(value.literal, target) else None
    return as_type(value.node, target, strict=strict) if target.in_datafusion else None


def _is_plain_time(literal: object, target: SparkType) -> bool:
    """Whether both engines read a text as the same date or instant: written in full, and one that exists."""
    if not isinstance(literal, str) or not (_DATE if target == DATE else _INSTANT).fullmatch(literal):
        return False
    try:
        return bool(date.fromisoformat(literal) if target == DATE else datetime.fromisoformat(literal))
    except ValueError:
        return False


def _instant_text(node: exp.Expression) -> exp.Expression:
    """`2024-01-13 08:30:00.12`: DataFusion writes a T, a Z, and the digits of the fraction in threes."""
    plain = call("replace", call("replace", as_type(node, STRING), text("T"), text(" ")), text("Z"), text(""))
    fraction = operation(exp.GT, call("strpos", plain, text(".")), exp.Literal.number(0))
    return choose((fraction, call("rtrim", plain, text("0"))), otherwise=plain)
