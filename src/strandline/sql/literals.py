"""Values as literals: one function for Spark's SQL, one for DataFusion's.

Both are exact for every value that a key, a cursor or a filter can hold, or they return None. A caller that
gets None takes a path that needs no literal. An inexact literal would match no row, and an empty result
clears its scope (L4).
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def spark_literal(value: object) -> str | None:
    """A value as Spark's SQL reads it. None for lists, structs and other values that have no literal.

    It is text, because Python's own values reach Spark through `java.sql.Timestamp` and `java.sql.Date`.
    These use the Julian calendar before 1582 and refuse years below 1000.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) < value < 2**63:
            return f"({value})" if value < 0 else str(value)
        case int() | Decimal():
            return _decimal(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP '{_utc(value).replace(tzinfo=None).isoformat(' ', 'microseconds')}+00:00'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None


def datafusion_literal(value: object) -> str | None:
    """A value as DataFusion reads it.

    None for doubles too: DataFusion has its own rules to compare NaN and -0.0.
    """
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).lower()
        case Decimal():
            return _decimal(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            # TIMESTAMP '...' would be counted in nanoseconds, which only reach from 1677 to 2262.
            micros = (_utc(value) - _EPOCH) // timedelta(microseconds=1)
            return f"arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None


def _decimal(value: int | Decimal) -> str | None:
    """A decimal of its own precision and scale. None if it needs more than 38 digits, or is not a number."""
    number = Decimal(value)
    if not number.is_finite():
        return None
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale + 1)
    return f"CAST('{number:f}' AS DECIMAL({precision}, {scale}))" if precision <= 38 else None


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def datafusion_name(identifier: str) -> str:
    """An identifier as DataFusion reads it."""
    return '"' + identifier.replace('"', '""') + '"'
