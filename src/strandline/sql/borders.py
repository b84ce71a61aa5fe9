"""Borders: values that depend on `:as_of` alone and that a bare column is compared with.

Only expressions from a short list are taken for borders. They are written again from their tree, and a border
that meant something else would lose rows. Anything else touches every entity when `as_of` moves.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlglot import exp

from strandline.model.entity import Border
from strandline.model.project import Calendar

from .job_sql import parse_known
from .spark import SPARK

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_UNDERSTOOD = (
    *(exp.Placeholder, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Literal, exp.Var, exp.DataType),
    *(exp.Interval, exp.IntervalSpan, exp.TimestampTrunc, exp.DateTrunc, exp.AddMonths, exp.TsOrDsAdd),
    *(exp.TsOrDsToDate, exp.Cast, exp.TryCast),
)
_FUNCTIONS = ("local_date", "local_month", "financial_year")
_AS_OF = "as_of"
Value = datetime | date


def find_borders(tree: exp.Expr) -> tuple[tuple[Border, ...], bool]:
    """The borders in an expression, and whether `:as_of` also occurs where it is not one."""
    borders: dict[Border, None] = {}
    elsewhere = False
    for placeholder in tree.find_all(exp.Placeholder):
        if placeholder.name != _AS_OF:
            continue
        found = list(_borders_of(placeholder))
        elsewhere |= not found
        borders |= dict.fromkeys(found)
    return tuple(borders), elsewhere


def _borders_of(placeholder: exp.Expr) -> Iterator[Border]:
    """The borders that a `:as_of` is part of. None if it is compared with anything but bare columns."""
    side: exp.Expr = placeholder
    while side.parent is not None and not isinstance(side.parent, (*_COMPARISONS, exp.Between)):
        side = side.parent
    comparison = side.parent
    if comparison is None or not _is_understood(side):
        return
    others = [part for part in comparison.iter_expressions() if part is not side]
    if isinstance(comparison, exp.Between) and comparison.this is not side:
        others = [comparison.this]  # it is compared with each end apart
    if others and all(_is_bare(other) for other in others):
        for other in others:
            yield Border(column=other.name.lower(), sql=side.sql(dialect=SPARK))


def _is_bare(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and len(node.parts) == 1 and isinstance(node.this, exp.Identifier)


def _is_understood(tree: exp.Expr) -> bool:
    return all(
        isinstance(node, _UNDERSTOOD)
        or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _FUNCTIONS)
        for node in tree.walk()
    )


def find_value(border: Border, as_of: datetime, calendar: Calendar) -> Value | None:
    """The value of a border at a time, without Spark. None if only Spark can compute it."""
    try:
        return _evaluate(parse_known(border.sql), as_of, calendar)
    except (OverflowError, ValueError):
        return None


def _evaluate(node: exp.Expr, as_of: datetime, calendar: Calendar) -> Value | None:
    match node:
        case exp.Placeholder():
            return as_of.astimezone(UTC)
        case exp.Paren():
            return _evaluate(node.this, as_of, calendar)
        case exp.Add() | exp.Sub():
            value, length = _evaluate(node.this, as_of, calendar), _find_length(node.expression)
            if not isinstance(value, datetime) or length is None:
                return None
            return value + length if isinstance(node, exp.Add) else value - length
        case exp.Anonymous() if str(node.this).lower() == "local_date" and len(node.expressions) == 1:
            value = _evaluate(node.expressions[0], as_of, calendar)
            local = value.astimezone(ZoneInfo(calendar.timezone)) if isinstance(value, datetime) else None
            return local.date() if local else None
        case exp.TsOrDsToDate() | exp.Cast() if _is_date(node):
            value = _evaluate(node.this, as_of, calendar)
            return value.date() if isinstance(value, datetime) else value
        case exp.TimestampTrunc():
            return _truncate(_evaluate(node.this, as_of, calendar), node.args["unit"].name.upper())
        case _:
            return None


def _is_date(node: exp.Expr) -> bool:
    if isinstance(node, exp.TsOrDsToDate):
        return not node.args.get("format")
    return node.args["to"].this is exp.DataType.Type.DATE


_LENGTHS = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}


def _find_length(node: exp.Expr) -> timedelta | None:
    """The length of an interval of one unit. Months have none."""
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        return None
    unit = _LENGTHS.get(node.args["unit"].name.upper().removesuffix("S"))
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    return unit * int(number) if unit and number.lstrip("-").isdecimal() else None


def _truncate(value: Value | None, unit: str) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "YEAR":
            return midnight.replace(month=1, day=1)
        case "MONTH":
            return midnight.replace(day=1)
        case "WEEK":
            return midnight - timedelta(days=midnight.weekday())
        case "DAY":
            return midnight
        case "HOUR":
            return value.replace(minute=0, second=0, microsecond=0)
        case _:
            return None
