"""What of a `select` decides whether it can be added to and subtracted from."""

import re
from collections.abc import Iterator

from sqlglot import exp

from strandline.model.accumulation import Addend, Adding
from strandline.model.number_types import (
    Added,
    Digits,
    Exactly,
    Multiplied,
    NumberType,
    OfColumn,
    OneOf,
    read_digits,
)

from .job_sql import parse_known
from .leaves import Cut, Leaf

_ADDING = {
    "count": Adding.COUNT,
    "count_if": Adding.COUNT,
    "sum": Adding.SUM,
    "avg": Adding.AVERAGE,
    "mean": Adding.AVERAGE,
    "min": Adding.LEAST,
    "max": Adding.GREATEST,
}
_LITERAL = re.compile(r"(\d+)(?:\.(\d*))?|\.(\d+)")
_MOST_OF_INT, _MOST_OF_BIGINT = 2**31 - 1, 2**63 - 1


def find_addends(cut: Cut, *, only_grows: bool) -> tuple[tuple[Addend, ...], str]:
    """The aggregates of a `select`, or why one of them cannot be added to.

    `only_grows`: rows are only ever added, and none of them stops to count.
    """
    addends = []
    for leaf in cut.leaves:
        adding = None if leaf.distinct else _ADDING.get(leaf.function)
        if adding is None:
            name = f"{leaf.function}(distinct ...)" if leaf.distinct else leaf.function
            return (), f"`{name}` depends on all rows"
        if not adding.takes_back and not only_grows:
            return (), f"`{leaf.function}` cannot tell what is left when a row goes"
        addends.append(_addend(leaf, adding))
    return tuple(addends), ""


def _addend(leaf: Leaf, adding: Adding) -> Addend:
    if adding is Adding.COUNT:
        return Addend(adding=adding)
    tree = parse_known(leaf.arguments[0])
    return Addend(
        adding=adding,
        number=find_number_type(tree) if adding in (Adding.SUM, Adding.AVERAGE) else None,
        argument=leaf.arguments[0],
        column=_column(tree) or "",
    )


def find_number_type(tree: exp.Expr) -> NumberType | None:
    """How the type of an expression follows from those of its columns. None if only Spark can tell."""
    if column := _column(tree):
        return OfColumn(column=column)
    match tree:
        case exp.Paren() | exp.Neg() | exp.Abs() | exp.Nullif():
            return find_number_type(tree.this)
        case exp.Literal() if not tree.is_string:
            return _literal(tree.this)
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = find_number_type(tree.this), find_number_type(tree.expression)
            if left is None or right is None:
                return None
            kind = Multiplied if isinstance(tree, exp.Mul) else Added
            return kind(left=left, right=right)
        case exp.Cast() | exp.TryCast():
            digits = read_digits(tree.args["to"].sql(dialect="spark"))
            return Exactly(digits=digits) if digits else None
        case exp.Case() | exp.If() | exp.Coalesce():
            parts = [find_number_type(part) for part in _branches(tree)]
            known = tuple(part for part in parts if part is not None)
            return OneOf(parts=known) if known and len(known) == len(parts) else None
        case _:
            return None


def _branches(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The values between which an expression chooses, without NULL, which fits every type."""
    match tree:
        case exp.Case():
            chosen = [*(branch.args["true"] for branch in tree.args["ifs"]), tree.args.get("default")]
        case exp.If():
            chosen = [tree.args["true"], tree.args.get("false")]
        case _:
            chosen = [tree.this, *tree.expressions]
    yield from (part for part in chosen if part is not None and not isinstance(part, exp.Null))


def _literal(text: str) -> Exactly | None:
    number = _LITERAL.fullmatch(text)
    if number is None:
        return None
    if text.isdecimal():
        if int(text) > _MOST_OF_BIGINT:
            return Exactly(digits=Digits(precision=len(text)))
        digits = read_digits("int" if int(text) <= _MOST_OF_INT else "bigint")
        assert digits is not None
        return Exactly(digits=digits)
    whole, scale = (number[1] or "").lstrip("0"), len(number[2] or number[3] or "")
    return Exactly(digits=Digits(precision=max(len(whole) + scale, 1), scale=scale))


def _column(tree: exp.Expr) -> str | None:
    """The column that an expression is. None if it is another, or a field of one."""
    is_column = (
        isinstance(tree, exp.Column) and len(tree.parts) == 1 and isinstance(tree.this, exp.Identifier)
    )
    return tree.name.lower() if is_column else None
