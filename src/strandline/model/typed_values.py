"""Values as columns of a type store them: exactly which value fits which type."""

import math
import re
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation

from .columns import ColumnType, TypeName, find_type

Scalar = bool | int | float | str | Decimal | date
"""A datetime is included: in Python it is a date."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    _DATE.pattern + r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_SAME_TYPE = {
    "byte": "int",
    "tinyint": "int",
    "short": "int",
    "smallint": "int",
    "integer": "int",
    "long": "bigint",
}
EXPECTED = {
    TypeName.BOOLEAN: "true or false",
    TypeName.INT: "a whole number of 32 bits",
    TypeName.BIGINT: "a whole number of 64 bits",
    TypeName.DOUBLE: "a number",
    TypeName.DECIMAL: "a number with no more digits than the column has",
    TypeName.STRING: "text",
    TypeName.DATE: "a date such as '2024-01-13'",
    TypeName.TIMESTAMP: "an instant such as '2024-01-13T08:30:00Z'",
}
"""What to write for a column of the type."""


def find_stored_type(text: str) -> ColumnType | None:
    """The type of a column, from its name in Spark or Delta. None if its values cannot be compared."""
    spelling = text.strip().lower()
    declared = find_type(_SAME_TYPE.get(spelling, spelling))
    return find_type(declared.stored) if declared else None


_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Of the decimal as which Spark compares a whole number with another decimal."""
_DECIMAL_DIGITS = 38


def are_compared_exactly(one: str, other: str) -> bool:
    """Whether Spark compares values of two types as they are, without rounding or parsing either of them."""
    if one == other or {one, other} == {"float", "double"}:
        return True
    first, second = _find_digits(one), _find_digits(other)
    if first and second:
        return max(first[0], second[0]) + max(first[1], second[1]) <= _DECIMAL_DIGITS
    return "double" in (one, other) and not {one, other}.isdisjoint({"tinyint", "smallint", "int"})


def _find_digits(kind: str) -> tuple[int, int] | None:
    """The digits before and after the point of an exact number. None for other types."""
    if kind in _WHOLE_DIGITS:
        return _WHOLE_DIGITS[kind], 0
    decimal = find_type(kind)
    if decimal is None or decimal.name is not TypeName.DECIMAL:
        return None
    return decimal.precision - decimal.scale, decimal.scale


def fit_value(value: Scalar, kind: ColumnType) -> Scalar:
    """The value as exactly one of the type; for a double, the nearest.

    Raises ValueError or ArithmeticError if it is not a value of the type.
    """
    match kind.name, value:
        case TypeName.BOOLEAN, bool():
            return value
        case _, bool():  # in Python an int, in a filter not
            pass
        case TypeName.INT, int() if -(2**31) <= value < 2**31:
            return value
        case TypeName.BIGINT, int() if -(2**63) <= value < 2**63:
            return value
        case TypeName.DOUBLE, int() | float() | Decimal() if math.isfinite(number := float(value)):
            return number
        case TypeName.DECIMAL, int() | float() | Decimal() if math.isfinite(value):
            # The shortest text of a float is what someone wrote: 0.1 in JSON means exactly 0.1.
            return _as_decimal(Decimal(repr(value) if isinstance(value, float) else value), kind)
        case TypeName.DECIMAL, str() if _NUMBER.fullmatch(value):
            return _as_decimal(Decimal(value), kind)
        case TypeName.STRING, str():
            value.encode()  # fails for half of a surrogate pair, which JSON can contain and which is not text
            return value
        case TypeName.DATE, str():
            return parse_date(value)
        case TypeName.DATE, date() if not isinstance(value, datetime):
            return value
        case TypeName.TIMESTAMP, str():
            return parse_instant(value)
        case TypeName.TIMESTAMP, datetime():
            return as_utc(value)
        case TypeName.TIMESTAMP, date():
            return datetime.combine(value, time(), UTC)
    raise ValueError(value)


def _as_decimal(value: Decimal, kind: ColumnType) -> Decimal:
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    return value.quantize(Decimal(1).scaleb(-kind.scale), context=exact)


def parse_date(text: str) -> date:
    """`2024-01-13`. Raises ValueError for anything else."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def parse_instant(text: str) -> datetime:
    """ISO text as an instant in UTC, to the microsecond. Without offset it is UTC, without time midnight.

    Raises ValueError for anything else, OverflowError if the offset leads out of the years 1 to 9999.
    """
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    return as_utc(datetime.fromisoformat(text))


def as_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def show_instant(value: datetime) -> str:
    return as_utc(value).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
