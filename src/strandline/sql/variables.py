"""The SQL of variables: `select` and `where` over the rows of a dataset, `expr` over other variables."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from strandline.model.entity import Border
from strandline.model.errors import Place
from strandline.model.report import Report

from .borders import find_borders
from .checks import GENERATORS, check_deterministic, check_row_wise, function_name
from .job_sql import parse_known
from .leaves import AGGREGATES, PICKED, RANKED, Cut, Leaf, cut_select, takes_arguments
from .parse import PlaceOfLine, line_of, parse_expression
from .row_names import RowName, find_row_names, find_stars

_CLOCK = "Use `:as_of`, the run's logical time."
_LATEST = "Use `latest(<column>)` or `earliest(<column>)`, which say which row is taken."
_ORDERED = ("percentile_cont", "percentile_disc")
"""They need `WITHIN GROUP`."""
_NUMBER_OF_ROWS = re.compile("[1-9][0-9]{0,6}")
_INSTEAD = dict.fromkeys(("any_value", "first", "last", "first_value", "last_value", "nth_value"), _LATEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an expression reads."""

    names: tuple[RowName, ...]
    borders: tuple[Border, ...] = ()
    moves_everybody: bool = False
    cut: Cut | None = None
    """Of a `select`: its aggregates."""

    @property
    def picks_rows(self) -> bool:
        return self.cut is not None and any(leaf.function in PICKED for leaf in self.cut.leaves)

    @property
    def needs_order(self) -> bool:
        return self.cut is not None and any(leaf.function in RANKED for leaf in self.cut.leaves)


def read_select(text: str, what: str, place_of: PlaceOfLine, report: Report) -> Read | None:
    """Check a `select`. None if it is wrong, which is then reported. `what` says in messages which it is."""
    tree = parse_expression(text, what, place_of, report)
    if tree is None:
        return None
    before = len(report)
    check_deterministic(tree, text, place_of, report, what, _CLOCK, _INSTEAD)
    _check_parameters(tree, what, place_of, report)
    if len(report) == before:
        _check_aggregates(tree, text, what, place_of, report)
    if len(report) > before:
        return None
    borders, elsewhere = find_borders(tree)
    return Read(names=_names(tree), borders=borders, moves_everybody=elsewhere, cut=cut_select(text))


def read_where(text: str, what: str, place_of: PlaceOfLine, report: Report) -> Read | None:
    """Check a condition over one row, which may use `:as_of`."""
    tree = parse_expression(text, what, place_of, report)
    if tree is None:
        return None
    before = len(report)
    check_deterministic(tree, text, place_of, report, what, _CLOCK)
    _check_parameters(tree, what, place_of, report)
    _check_row(tree, what, place_of(1), report, allowed=[p.name for p in tree.find_all(exp.Placeholder)])
    if len(report) > before:
        return None
    borders, elsewhere = find_borders(tree)
    return Read(names=_names(tree), borders=borders, moves_everybody=elsewhere)


def read_expr(text: str, what: str, place_of: PlaceOfLine, report: Report) -> Read | None:
    """Check an expression over other variables."""
    tree = parse_expression(text, what, place_of, report)
    if tree is None:
        return None
    before = len(report)
    clock = "Use `:as_of` in the `where` or `select` of a variable that it names."
    check_deterministic(tree, text, place_of, report, what, clock)
    _check_row(tree, what, place_of(1), report)
    return None if len(report) > before else Read(names=_names(tree))


def _names(tree: exp.Expr) -> tuple[RowName, ...]:
    """The columns that an expression names. Arguments of lambdas are none."""
    bound = {
        argument.name.lower() for function in tree.find_all(exp.Lambda) for argument in function.expressions
    }
    return tuple(name for name in find_row_names(tree) if name.first not in bound)


def _check_row(
    tree: exp.Expr, what: str, place: Place, report: Report, allowed: Collection[str] = ()
) -> None:
    if any(find_stars(tree)):
        report.add("star-in-expression", f"{what} uses `*`.", "Name each column that it needs.", place)
    check_row_wise(tree, what, place, report, sees="row", allowed=allowed)


def _check_parameters(tree: exp.Expr, what: str, place_of: PlaceOfLine, report: Report) -> None:
    for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
        if parameter.name != "as_of":
            mistake = f"{what} uses the parameter `:{parameter.name}`, which does not exist."
            remedy = "Write the value itself, or use `:as_of`, the run's logical time."
            report.add("unknown-parameter", mistake, remedy, place_of(line_of(parameter)))


def _check_aggregates(tree: exp.Expr, text: str, what: str, place_of: PlaceOfLine, report: Report) -> None:
    """Every column must be inside of an aggregate, and every aggregate one of the list."""
    for mistake, remedy, node in _find_misuses(tree):
        report.add("variable-select", f"{what} {mistake}", remedy, place_of(line_of(node, text)))
        return
    cut = cut_select(text)
    if not cut.leaves:
        remedy = "Write an aggregate, such as `count(*)` or `latest(<column>)`."
        report.add("variable-select", f"{what} has no aggregate.", remedy, place_of(1))
        return
    for other in parse_known(cut.fill(lambda _: "NULL")).find_all(exp.AggFunc):
        mistake = f"{what} uses `{function_name(other)}`, which is not one of the aggregates of variables."
        report.add("variable-select", mistake, "Compute it in a job, and read its output.", place_of(1))
    for leaf in cut.leaves:
        if not _is_called_right(leaf):
            mistake = f"{what} uses `{leaf.function}` with arguments that it does not take."
            report.add("variable-select", mistake, f"Write {_tell_call(leaf.function)}.", place_of(1))


def _tell_call(function: str) -> str:
    """How an aggregate is called."""
    match function:
        case "latest" | "earliest":
            return f"`{function}(<column>)`, or `{function}(<column>, 3)` for several"
        case "max_by" | "min_by":
            return f"`{function}(<column>, <order>)`, or `latest(<column>, 3)` for several"
        case "count":
            return "`count(*)` or `count(<column>)`"
        case "percentile":
            return "`percentile(<column>, 0.5)`"
        case "percentile_cont" | "percentile_disc":
            return f"`{function}(0.5) WITHIN GROUP (ORDER BY <column>)`"
        case _:
            columns = next(n for n in (1, 2) if takes_arguments(function, n))
            return f"`{function}({', '.join(['<column>'] * columns)})`"


def _is_called_right(leaf: Leaf) -> bool:
    if leaf.function in PICKED:
        return _takes_rows(leaf)
    if leaf.function in _ORDERED and not leaf.within:
        return False
    return takes_arguments(leaf.function, len(leaf.arguments))


def _takes_rows(leaf: Leaf) -> bool:
    """Whether a leaf that takes one of several rows, or the first few, says which.

    Spark's own `max_by` of several rows decides ties by chance.
    """
    if leaf.distinct or leaf.within:
        return False
    if leaf.function in RANKED:
        number = leaf.arguments[1] if len(leaf.arguments) == 2 else "1"
        return len(leaf.arguments) in (1, 2) and bool(_NUMBER_OF_ROWS.fullmatch(number))
    return len(leaf.arguments) == 2


def _find_misuses(tree: exp.Expr) -> Iterator[tuple[str, str, exp.Expr]]:
    for node in tree.walk():
        if isinstance(node, exp.Window):
            yield "uses a window function.", "Write an aggregate over the rows of one entity.", node
        if isinstance(node, exp.Query):
            yield "uses a subquery.", "Compute it in a job, and read its output.", node
        if function_name(node) in GENERATORS:
            yield "uses a function that makes several rows.", "Do this in a job, and read its output.", node
        if _is_aggregate(node) and _inside(node):
            yield "has an aggregate inside of another.", "Compute the inner one in a job.", node
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            yield "uses `*`.", "Name each column that it needs.", node
        if isinstance(node, exp.Column) and not _inside(node) and not _is_bound(node):
            remedy = "Write it inside of one, such as `max`: an entity has one value, and many rows."
            yield f"names `{node.name}` outside of an aggregate.", remedy, node


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in AGGREGATES
    return isinstance(node, exp.AggFunc)


def _inside(node: exp.Expr) -> bool:
    above = node.parent
    while above is not None:
        if _is_aggregate(above) or isinstance(above, exp.WithinGroup | exp.Filter):
            return not (isinstance(above, exp.WithinGroup | exp.Filter) and above.this is node)
        above = above.parent
    return False


def _is_bound(node: exp.Column) -> bool:
    """Whether a name is the argument of a lambda, as `e` in `transform(xs, e -> e + 1)`."""
    above = node.find_ancestor(exp.Lambda)
    return above is not None and node.parts[0].name in {a.name for a in above.expressions}


def find_merge(cut: Cut) -> str | None:
    """What `merge:` must say for a select: how two results are made one. None if they cannot be."""
    leaf = cut.only
    if leaf is None or leaf.distinct:
        return None
    by_function: Mapping[str, str] = {
        "count": "sum",
        "count_if": "sum",
        "sum": "sum",
        "min": "min",
        "max": "max",
        "bool_and": "min",
        "bool_or": "max",
    }
    return by_function.get(leaf.function)
