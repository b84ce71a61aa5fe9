"""SQL that is written as text in Python code."""

from collections.abc import Collection, Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .checks import function_name
from .spark import SPARK


def try_parse(sql: str) -> exp.Expr | None:
    """A text as a tree. None if it is not SQL."""
    try:
        return sqlglot.parse_one(sql, read=SPARK)
    except (SqlglotError, RecursionError, ValueError):
        return None


def find_ties(tree: exp.Expr, *, ranked: Collection[str], hashing: Collection[str]) -> Iterator[str]:
    """The parts, as SQL, whose value may differ when an order leaves rows equal.

    These are the `ranked` functions over an ordered window, and functions that take the row of the largest
    value. An order that ends with one of the `hashing` functions leaves no rows equal.
    """
    for part in tree.find_all(exp.Window, exp.ArgMax, exp.ArgMin):
        if _leaves_ties(part, ranked, hashing):
            yield part.sql(dialect="spark")


def _leaves_ties(node: exp.Expr, ranked: Collection[str], hashing: Collection[str]) -> bool:
    if isinstance(node, exp.Window):
        name = function_name(
            node.this.this if isinstance(node.this, (exp.IgnoreNulls, exp.RespectNulls)) else node.this
        )
        order = node.args.get("order")
        return (
            name in ranked and order is not None and function_name(order.expressions[-1].this) not in hashing
        )
    value, order = node.this, node.args.get("expression")
    return not (isinstance(order, exp.Struct) and any(part == value for part in order.expressions))
