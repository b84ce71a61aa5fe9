"""Borders: values that depend on `:as_of` alone and that a bare column is compared with.

Only expressions from a short list are taken for borders. They are written again from their tree, and a border
that meant something else would lose rows. Anything else touches every entity when `as_of` moves.
"""

from collections.abc import Iterator

from sqlglot import exp

from strandline.model.border_steps import TRUNCATED, BorderStep, Shift, ToDate, Truncate
from strandline.model.entity import Border

from .spark import SPARK

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_UNDERSTOOD = (
    *(exp.Placeholder, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Literal, exp.Var, exp.DataType),
    *(exp.Interval, exp.IntervalSpan, exp.TimestampTrunc, exp.DateTrunc, exp.AddMonths, exp.TsOrDsAdd),
    *(exp.TsOrDsToDate, exp.Cast, exp.TryCast),
)
_FUNCTIONS = ("local_date", "local_month", "financial_year")
_AS_OF = "as_of"


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
            yield Border(column=other.name.lower(), sql=side.sql(dialect=SPARK), steps=find_steps(side))


def _is_bare(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and len(node.parts) == 1 and isinstance(node.this, exp.Identifier)


def _is_understood(tree: exp.Expr) -> bool:
    return all(
        isinstance(node, _UNDERSTOOD)
        or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _FUNCTIONS)
        for node in tree.walk()
    )


def find_steps(tree: exp.Expr) -> tuple[BorderStep, ...] | None:
    """The steps from `:as_of` to the value of a border. None if only Spark can compute it."""
    match tree:
        case exp.Placeholder():
            return ()
        case exp.Paren():
            return find_steps(tree.this)
        case exp.Add() | exp.Sub():
            seconds = _find_seconds(tree.expression)
            if seconds is None:
                return None
            return _then(tree.this, Shift(seconds=seconds if isinstance(tree, exp.Add) else -seconds))
        case exp.Anonymous() if str(tree.this).lower() == "local_date" and len(tree.expressions) == 1:
            return _then(tree.expressions[0], ToDate(local=True))
        case exp.TsOrDsToDate() | exp.Cast() if _is_date(tree):
            return _then(tree.this, ToDate(local=False))
        case exp.TimestampTrunc() if tree.args["unit"].name.upper() in TRUNCATED:
            return _then(tree.this, Truncate(unit=tree.args["unit"].name.upper()))
        case _:
            return None


def _then(tree: exp.Expr, step: BorderStep) -> tuple[BorderStep, ...] | None:
    """The steps to a value, and one more. Only the last one may give a date: dates have other rules."""
    steps = find_steps(tree)
    if steps is None or any(isinstance(earlier, ToDate) for earlier in steps):
        return None
    return (*steps, step)


def _is_date(node: exp.Expr) -> bool:
    if isinstance(node, exp.TsOrDsToDate):
        return not node.args.get("format")
    return node.args["to"].this is exp.DataType.Type.DATE


_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}


def _find_seconds(node: exp.Expr) -> int | None:
    """The length of an interval of one unit. Months have none."""
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        return None
    unit = _SECONDS.get(node.args["unit"].name.upper().removesuffix("S"))
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    return unit * int(number) if unit and number.lstrip("-").isdecimal() else None
