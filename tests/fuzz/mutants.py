"""Wrong provers: each weakens one rule of the proof. The laws must find every one of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sqlglot import exp

from strandline.sql import joins, selects
from strandline.sql import partition_expressions as finer
from strandline.sql import proof as relations
from strandline.sql import visible as scopes
from strandline.sql.proof import _Prover
from strandline.sql.visible import Rows, Scope, Seen
from tests.fuzz.queries import KEYS, Profile, days

NEW_YORK = days("America/New_York")


@contextmanager
def mutated(name: str) -> Iterator[None]:
    target, attribute, replacement, *_ = MUTANTS[name]
    with patch.object(target, attribute, replacement):
        yield


def _look_through(*kinds: type[exp.Expr]) -> Callable[..., Any]:
    resolve = Scope.resolve

    def resolved(self: Scope, node: exp.Expr | None) -> Any:
        while node is not None and isinstance(node, (*kinds, exp.Paren)):
            node = node.this
        return resolve(self, node)

    return resolved


def _as_inner(*sides: str) -> Callable[..., Any]:
    add_joined = joins.add_joined

    def joined(scope: Scope, join: exp.Join, *rest: Any) -> Any:
        if str(join.args.get("side") or "").upper() in sides and not join.args.get("kind"):
            join = join.copy()
            join.set("side", None)
        return add_joined(scope, join, *rest)

    return joined


def _without_subqueries_of(kind: type[exp.Expr]) -> Callable[..., None]:
    subqueries = _Prover.subqueries

    def followed(self: _Prover, clauses: list[exp.Expr], *rest: Any) -> None:
        subqueries(self, [clause for clause in clauses if not isinstance(clause, kind)], *rest)

    return followed


def _any_link(scope: Scope, mine: Any, key: tuple[str, ...], pairs: Any) -> str | None:
    return None if any(joins._linked(scope, mine, column, pairs) for column in key) else key[0]


def _any_column(self: Scope, key: tuple[str, ...], seen: list[Seen]) -> str | None:
    return None if any(self.holds(one, column) for one in seen for column in key) else key[0]


def _with_or(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.And, exp.Or, exp.Paren)):
        yield from _with_or(node.this)
        yield from _with_or(node.args.get("expression"))
    elif node is not None:
        yield node


def _any_comparison(scope: Scope, condition: exp.Expr | None) -> Iterator[tuple[Seen, Seen]]:
    for part in scopes.conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ, exp.LTE, exp.GTE)):
            one, other = scope.see(part.this), scope.see(part.expression)
            if one and other:
                yield from ((one, other), (other, one))


def _plain_sets(node: exp.Select) -> selects.Groups:
    group = node.args.get("group")
    if group is None or not group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        return _groups_of(node)
    return list(group.find_all(exp.Column))


_groups_of = selects.groups_of
_table = _Prover.table
_see = Scope.see


def _table_first(self: _Prover, node: exp.Table, environment: Any) -> Rows:
    return _table(self, node, {} if node.name.lower() in self.tables else environment)


def _in_one_order(self: _Prover, node: exp.Table, environment: Any) -> Rows:
    rows = _table(self, node, environment)
    return (
        replace(rows, order=tuple(sorted(rows.order))) if rows.order and rows.origin in self.tables else rows
    )


def _by_place_of_the_name(left: Rows, right: Rows, key: str) -> frozenset[str]:
    return left.carriers.get(key, frozenset()) or frozenset({key})


def _of_the_type_of_its_column(self: Scope, node: exp.Expr | None) -> Seen | None:
    seen = _see(self, node)
    return replace(seen, type=self.type_of(seen.ref)) if seen is not None and seen.finer else seen


def _of_any_unit(self: finer.PartitionSteps, node: exp.Expr) -> tuple[exp.Column, str] | None:
    column, step = finer._argument(node), finer._step(node, self.timezone)
    return (column, step[1]) if column is not None and step is not None else None


MUTANTS: dict[str, tuple[Any, str, Any, Profile, int]] = {
    "a right join is an inner join": (relations, "add_joined", _as_inner("RIGHT"), KEYS, 116),
    "a full join is an inner join": (relations, "add_joined", _as_inner("FULL"), KEYS, 24),
    "a left join is an inner join": (relations, "add_joined", _as_inner("LEFT"), KEYS, 160),
    "a join on one column of the key is one on all": (joins, "_unlinked", _any_link, KEYS, 38),
    "a join by OR is one by AND": (scopes, "conjuncts", _with_or, KEYS, 245),
    "`<=` is `=`": (joins, "equal_columns", _any_comparison, KEYS, 38),
    "columns of other types are joined alike": (joins, "same", lambda one, other: True, NEW_YORK, 1),
    "subqueries are not looked into": (_Prover, "subqueries", lambda *_: None, KEYS, 6),
    "subqueries in HAVING are not looked into": (
        _Prover,
        "subqueries",
        _without_subqueries_of(exp.Having),
        KEYS,
        90,
    ),
    "subqueries in WHERE are not looked into": (
        _Prover,
        "subqueries",
        _without_subqueries_of(exp.Where),
        KEYS,
        2163,
    ),
    "a cast of the key is the key": (Scope, "resolve", _look_through(exp.Cast, exp.Abs), KEYS, 1252),
    "a function of the key is the key": (Scope, "resolve", _look_through(exp.Coalesce, exp.Upper), KEYS, 223),
    "a window by one column of the key is one by all": (Scope, "find_missing", _any_column, KEYS, 883),
    "grouping sets are groups": (relations, "groups_of", _plain_sets, KEYS, 11),
    "windows are not looked at": (_Prover, "windows", lambda *_: None, KEYS, 200),
    "LIMIT is not looked at": (_Prover, "cut", lambda self, node, rows: rows, KEYS, 179),
    "a CTE hides no table": (_Prover, "table", _table_first, KEYS, 388),
    "columns stand in the order of their names": (_Prover, "table", _in_one_order, KEYS, 59),
    "branches of a UNION need not agree": (relations, "_held_in_both", _by_place_of_the_name, KEYS, 229),
    "a day has the type of its time": (Scope, "see", _of_the_type_of_its_column, NEW_YORK, 1),
    "a month is as fine as a day": (finer.PartitionSteps, "find", _of_any_unit, days("UTC"), 15),
    "a date is cast to its day": (finer.PartitionSteps, "takes", lambda self, type_: True, NEW_YORK, 19),
}
"""By what the mutant believes: the replaced function, its replacement, queries that show it, and a seed.

The seed is near one that finds the mutant.
"""
