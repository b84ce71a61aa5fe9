"""A filter as people type it (`block_number BETWEEN 995 AND 1005`) -> a row filter (`model.conditions`).

The result contains values, never SQL.
"""

from collections.abc import Iterator
from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.errors import CallError
from strandline.model.typed_values import Scalar, parse_date, parse_instant

from .spark import SPARK

LONGEST_TEXT = 64 * 1024
"""In bytes."""

_SHOWN_LETTERS = 60

# A NULL is neither equal nor null-safe equal to a value, so as a filter `<=>` is `=`.
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: Operator.EQ,
    exp.NullSafeEQ: Operator.EQ,
    exp.NEQ: Operator.NEQ,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GTE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LTE,
}
_TURNED = {
    Operator.GT: Operator.LT,
    Operator.GTE: Operator.LTE,
    Operator.LT: Operator.GT,
    Operator.LTE: Operator.GTE,
}


def parse_filter(text: str) -> AllOf:
    """The comparisons of a text, in its order.

    Column names are put in lower case. `check_filter` reports those that do not exist.
    """
    if len(text.encode(errors="surrogatepass")) > LONGEST_TEXT:
        what = f"The filter is longer than {LONGEST_TEXT // 1024} KiB."
        raise CallError(what, remedy="Name a range instead, or split the call.", slug="filter-too-large")
    try:
        return AllOf(parts=tuple(comparison for part in _split(_parse(text)) for comparison in _read(part)))
    except RecursionError:
        raise _unknown("The filter is nested too deeply.") from None


def _parse(text: str) -> exp.Expr:
    try:
        trees = SPARK.parser().parse_into(exp.Condition, SPARK.tokenize(text), text)
    except ParseError as error:
        near = str(error.errors[0].get("highlight") or "")[:_SHOWN_LETTERS] if error.errors else ""
        raise _unknown(f"The filter is wrong at `{near}`.") from None
    except (SqlglotError, ValueError):
        raise _unknown("The filter cannot be split into words: a quote or a comment is not closed.") from None
    match trees:
        case [exp.Expr() as tree]:
            return tree
        case [] | [None]:
            raise _unknown("The filter is empty.")
        case _:
            raise _unknown("The filter has several statements.")


def _split(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND joins, in the order of the text. A loop, because a long text is a deep tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            yield node


def _read(node: exp.Expr) -> Iterator[Comparison]:
    negated = isinstance(node, exp.Not)
    inner = node.this if negated else node
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        yield Comparison(column=_column(inner.this), operator=Operator.IS_NULL, value=not negated)
    elif isinstance(inner, exp.In) and inner.expressions:
        values = tuple(_value(one) for one in inner.expressions)
        yield Comparison(
            column=_column(inner.this), operator=Operator.NIN if negated else Operator.IN, value=values
        )
    elif isinstance(node, exp.Between) and not node.args.get("symmetric"):
        column = _column(node.this)
        yield Comparison(column=column, operator=Operator.GTE, value=_value(node.args["low"]))
        yield Comparison(column=column, operator=Operator.LTE, value=_value(node.args["high"]))
    elif operator := _OPERATORS.get(type(node)):
        left, right = node.this, node.expression
        if isinstance(right.unnest(), exp.Column) and not isinstance(left.unnest(), exp.Column):
            left, right, operator = right, left, _TURNED.get(operator, operator)
        yield Comparison(column=_column(left), operator=operator, value=_value(right))
    else:
        raise _not_understood(node, "a comparison")


def _column(node: exp.Expr) -> str:
    column = node.unnest()
    if (
        not isinstance(column, exp.Column)
        or len(column.parts) != 1
        or not isinstance(column.this, exp.Identifier)
    ):
        raise _not_understood(column, "a column")
    return column.name.lower()


def _value(node: exp.Expr) -> Scalar:
    value = node.unnest()
    try:
        if isinstance(value, exp.Boolean):
            return bool(value.this)
        if isinstance(value, exp.Literal):
            return value.name if value.is_string else _number(value.name)
        if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and not value.this.is_string:
            return _number("-" + value.this.name)  # `-` on a Decimal would round it
        # DATE '...' and TIMESTAMP '...'. An explicit cast is a TryCast in this dialect.
        if type(value) is exp.Cast and isinstance(value.this, exp.Literal) and value.this.is_string:
            match value.to.this:
                case exp.DataType.Type.DATE:
                    return parse_date(value.this.name)
                case exp.DataType.Type.TIMESTAMPTZ:
                    return parse_instant(value.this.name)
    except (ValueError, ArithmeticError):
        pass  # reported below
    raise _not_understood(value, "a value")


def _number(text: str) -> int | float | Decimal:
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _not_understood(node: exp.Expr, expected: str) -> CallError:
    shown = node.sql(dialect=SPARK, comments=False, unsupported_level=ErrorLevel.IGNORE)
    shown = shown if len(shown) <= _SHOWN_LETTERS else shown[:_SHOWN_LETTERS] + "..."
    return _unknown(f"`{shown}` is not understood as {expected}.")


def _unknown(what: str) -> CallError:
    remedy = (
        "Compare columns with values by = <> < <= > >=, BETWEEN, IN, NOT IN, IS NULL or IS NOT NULL,"
        " and join comparisons by AND."
    )
    return CallError(what, remedy=remedy, slug="filter-unknown")
