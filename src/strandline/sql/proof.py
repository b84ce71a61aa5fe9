"""The proof that an input relates to a job's key `by` its same-named columns.

The rules are those of LANGUAGE.md ("`by` counts as proved where ..."). Each operator either passes a
restriction of the key on to its inputs or breaks it. A query that contains anything `understood` does not
list proves nothing: a wrong proof is silently wrong data, a missing one costs a line of YAML.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from .checks import window_part
from .joins import add_joined
from .known_columns import Known
from .parse import with_of
from .selects import Groups, check_names, clauses_of, groups_of, project
from .ties import Tie, find_sensitive, find_unique, judge, judge_cut_of_rows, unfollowed
from .understood import find_unknown
from .visible import OF, Rows, Scope, Steps, nothing_known, own_nodes

Environment = Mapping[str, Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """An input of the job."""

    known: Known
    by: tuple[str, ...]
    """The columns that hold the key, in the key's order. Empty if it is not restricted (whole, via, lookup).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What can be derived from a job's SQL."""

    proved: frozenset[str]
    reasons: Mapping[str, str]
    """Why an input is not proved."""
    output: Known
    unknown_columns: tuple[tuple[exp.Column, tuple[str, ...]], ...]
    """Columns that certainly do not exist, each with those that do."""
    ties: tuple[Tie, ...] = ()
    """Orders that leave rows equal where the order matters."""


def prove(
    tree: exp.Query,
    key: tuple[str, ...],
    tables: Mapping[str, Table],
    candidates: Collection[str],
    *,
    by_name: bool = True,
    steps: Steps | None = None,
) -> Analysis:
    """Which of the candidate inputs are related by the key when all the other inputs are read whole.

    An input that fails is read whole and the rest is analysed again: what is proved beside it might hold only
    when both are restricted.
    """
    reasons: dict[str, str] = {}
    while True:
        analysis = analyse(tree, key, tables, by_name=by_name, steps=steps)
        lost = [name for name in candidates if tables[name].by and name not in analysis.proved]
        if not lost:
            return replace(analysis, reasons={**analysis.reasons, **reasons})
        reasons |= {name: analysis.reasons[name] for name in lost}
        tables = {**tables, **{name: replace(tables[name], by=()) for name in lost}}


def analyse(
    tree: exp.Query,
    key: tuple[str, ...],
    tables: Mapping[str, Table],
    *,
    by_name: bool = True,
    steps: Steps | None = None,
) -> Analysis:
    """Follow the key from the inputs to the output.

    With `by_name` False the output may lack the key's columns.
    """
    prover = _Prover(key, tables, steps)
    rows = prover.query(tree, {}, ())
    expected = [column for column in key if by_name or rows.names is None or column in rows.names]
    missing = next((column for column in expected if column not in rows.carriers.get(column, ())), None)
    if missing is not None:
        rows = prover.broken(rows, f"the output's `{missing}` is not its own `{missing}` passed on unchanged")
    if (unknown := find_unknown(tree)) is not None:
        prover.blame(frozenset(tables), f"the SQL contains {unknown}, which cannot be followed")
    proved = frozenset(name for name in rows.live if name not in prover.reasons)
    reasons = {
        name: prover.reasons.get(name, "the SQL does not show it") for name in tables if name not in proved
    }
    types = {
        name: type_ if "." not in type_ and OF not in type_ else None for name, type_ in rows.types.items()
    }
    in_order = (
        {name: types[name] for name in rows.order} if rows.order is not None and all(rows.order) else types
    )
    return Analysis(
        proved=proved,
        reasons=reasons,
        output=Known(
            types=in_order,
            complete=rows.complete,
            names=rows.names,
            unique=tuple(tuple(sorted(u)) for u in rows.unique),
        ),
        unknown_columns=tuple(prover.unknown_columns),
        ties=(
            *prover.ties,
            *(unfollowed(node) for node in find_sensitive(tree) if id(node) not in prover.judged),
        ),
    )


class _Prover:
    """One walk over a query.

    `reasons` says which inputs may not be restricted, because a use of them breaks it.
    """

    def __init__(self, key: tuple[str, ...], tables: Mapping[str, Table], steps: Steps | None) -> None:
        self.key = key
        self.tables = tables
        self.steps = steps
        self.reasons: dict[str, str] = {}
        self.unknown_columns: list[tuple[exp.Column, tuple[str, ...]]] = []
        self.ties: list[Tie] = []
        self.judged: set[int] = set()
        self.unnamed = 0

    def broken(self, rows: Rows, reason: str) -> Rows:
        self.blame(rows.live, reason)
        return rows.without_key()

    def blame(self, names: frozenset[str], reason: str) -> None:
        for name in names:
            self.reasons.setdefault(name, reason)

    def break_scope(self, scope: Scope, reason: str) -> None:
        self.blame(scope.live, reason)
        scope.lose_key()

    def query(self, node: exp.Expr, environment: Environment, outer: tuple[Scope, ...]) -> Rows:
        if (with_ := with_of(node)) is not None:
            environment = self.add_ctes(with_, environment, outer)
        match node:
            case exp.Select():
                rows = self.select(node, environment, outer)
            case exp.SetOperation():
                rows = self.set_operation(node, environment, outer)
            case exp.Subquery() if isinstance(node.this, exp.Query):
                rows = self.query(node.this, environment, outer)
            case _:
                return self.opaque(node, environment, outer)
        return self.cut(node, rows)

    def cut(self, node: exp.Expr, rows: Rows) -> Rows:
        limit = node.args.get("limit") or node.args.get("offset") or node.args.get("fetch")
        if limit is None:
            return rows
        if node.args.get("order") and isinstance(node, exp.Query) and not isinstance(node, exp.Select):
            self.note(limit, judge_cut_of_rows(limit, node, rows))
        return self.broken(rows, "`LIMIT` takes the first rows over all keys")

    def note(self, node: exp.Expr, tie: Tie | None) -> None:
        """Record the verdict on an order that matters."""
        self.judged.add(id(node))
        if isinstance(node.parent, exp.Query):
            self.judged |= {
                id(node.parent.args[part])
                for part in ("limit", "offset", "fetch")
                if node.parent.args.get(part)
            }
        if tie is not None:
            self.ties.append(tie)

    def add_ctes(self, with_: exp.With, environment: Environment, outer: tuple[Scope, ...]) -> Environment:
        environment = dict(environment)
        for cte in with_.expressions:
            name = cte.alias.lower()
            if with_.args.get("recursive"):
                environment[name] = nothing_known(self.fresh())
            rows = self.query(cte.this, environment, outer)
            if with_.args.get("recursive"):
                rows = self.broken(rows, "it is read in a recursive CTE")
            environment[name] = self.with_alias_columns(rows, cte)
        return environment

    def with_alias_columns(self, rows: Rows, node: exp.Expr) -> Rows:
        alias = node.args.get("alias")
        columns = (
            [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        )
        if not columns:
            return rows
        renamed = rows.renamed(columns)
        if renamed is not None:
            return renamed
        self.broken(rows, "its columns are renamed by position")
        return self.named_rows(columns)

    def named_rows(self, columns: list[str]) -> Rows:
        """Rows that hold no input's key. At most their column names are known."""
        origin = self.fresh()
        if not columns:
            return nothing_known(origin)
        types = {name: f"{origin}.{name}" for name in columns}
        return Rows(types=types, complete=True, order=tuple(columns), names=frozenset(columns), origin=origin)

    def fresh(self) -> str:
        self.unnamed += 1
        return f"#{self.unnamed}"

    def opaque(self, node: exp.Expr, environment: Environment, outer: tuple[Scope, ...]) -> Rows:
        """Something that is not understood here: whatever it reads is not proved."""
        for part in own_nodes([node]):
            if isinstance(part, exp.Query) and part is not node:
                self.broken(
                    self.query(part, environment, outer), "it is read where its rows cannot be followed"
                )
            elif isinstance(part, exp.Table):
                self.broken(self.table(part, environment), "it is read where its rows cannot be followed")
        return nothing_known(self.fresh())

    def table(self, node: exp.Table, environment: Environment) -> Rows:
        name = node.name.lower()
        if not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            return nothing_known(self.fresh())
        if name in environment:
            return environment[name]
        if name not in self.tables:
            return nothing_known(name)
        table = self.tables[name]
        known = table.known
        rows = Rows(
            types={column: type_ or f"{name}.{column}" for column, type_ in known.types.items()},
            complete=known.complete,
            order=tuple(known.types) if known.complete else None,
            names=known.names,
            origin=name,
            other_type=known.other_type,
            unique=tuple(frozenset(columns) for columns in known.unique),
        )
        if not table.by:
            return rows
        if known.complete and (missing := [column for column in table.by if column not in known.types]):
            self.reasons.setdefault(name, f"it has no column `{missing[0]}`")
            return rows
        carriers = {key: frozenset({column}) for key, column in zip(self.key, table.by, strict=True)}
        return replace(rows, carriers=carriers, live=frozenset({name}))

    def source(self, node: exp.Expr, environment: Environment, outer: tuple[Scope, ...]) -> tuple[str, Rows]:
        """One element of FROM or JOIN, with its alias."""
        alias = (node.alias_or_name or self.fresh()).lower()
        match node:
            case exp.Table() if not _has_more(node):
                return alias, self.with_alias_columns(self.table(node, environment), node)
            case exp.Subquery() if isinstance(node.this, exp.Query) and not _has_more(node):
                return alias, self.with_alias_columns(self.query(node, environment, outer), node)
            case exp.Values():
                columns = (
                    [column.name.lower() for column in node.args["alias"].columns]
                    if node.args.get("alias")
                    else []
                )
                return alias, self.named_rows(columns)
            case _:
                if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Query):
                    self.broken(self.query(node.this, environment, outer), "it is read in a LATERAL subquery")
                return alias, self.opaque(node, environment, outer)

    def select(self, node: exp.Select, environment: Environment, outer: tuple[Scope, ...]) -> Rows:
        scope = Scope(steps=self.steps)
        start = node.args.get("from_") or node.args.get("from")
        if start is not None:
            alias, rows = self.source(start.this, environment, outer)
            scope.sources[alias] = rows
            scope.carriers = {
                key: {(alias, column) for column in columns} for key, columns in rows.carriers.items()
            }
            scope.live = rows.live
        for join in node.args.get("joins") or ():
            self.join(scope, join, environment, outer)
        for lateral in node.args.get("laterals") or ():
            self.lateral(scope, lateral)
        clauses = clauses_of(node)
        self.subqueries(clauses, environment, (scope, *outer))
        self.unknown_columns += check_names(node, scope, outer)
        groups = groups_of(node)
        self.rank(scope, node, groups)
        self.group(scope, groups)
        self.windows(scope, clauses)
        rows = project(node, scope, self.fresh())
        rows = replace(rows, unique=find_unique(node, scope, groups, rows))
        if rows.live and (
            missing := next((column for column in self.key if not rows.carriers.get(column)), None)
        ):
            return self.broken(rows, f"a SELECT does not pass `{missing}` on unchanged")
        if (distinct := node.args.get("distinct")) is not None and distinct.args.get("on"):
            return self.broken(rows, "`DISTINCT ON` keeps rows by their order")
        return rows

    def lateral(self, scope: Scope, node: exp.Lateral) -> None:
        alias = (node.alias or self.fresh()).lower()
        columns = (
            [column.name.lower() for column in node.args["alias"].columns] if node.args.get("alias") else []
        )
        if not node.args.get("view") or alias in scope.sources:
            self.break_scope(scope, "it is read beside a LATERAL that cannot be followed")
        scope.sources[alias] = self.named_rows(columns)

    def join(self, scope: Scope, join: exp.Join, environment: Environment, outer: tuple[Scope, ...]) -> None:
        # A LATERAL subquery sees the sources before it.
        alias, rows = self.source(
            join.this, environment, (scope, *outer) if isinstance(join.this, exp.Lateral) else outer
        )
        for name, reason in add_joined(scope, join, alias, rows, self.key).items():
            self.reasons.setdefault(name, reason)
        on = join.args.get("on")
        self.subqueries([on] if on is not None else [], environment, (scope, *outer))

    def subqueries(self, clauses: list[exp.Expr], environment: Environment, outer: tuple[Scope, ...]) -> None:
        for part in own_nodes(clauses):
            if isinstance(part, exp.Query):
                self.broken(self.query(part, environment, outer), "it is read in a subquery of an expression")

    def rank(self, scope: Scope, node: exp.Select, groups: Groups) -> None:
        """Orders that matter must leave no two rows equal."""
        parts = [
            *clauses_of(node),
            *(node.args[part] for part in ("limit", "offset") if node.args.get(part) is not None),
        ]
        own = {id(part) for part in own_nodes(parts)}
        for part in find_sensitive(node):
            if id(part) in own and id(part) not in self.judged:
                self.note(part, judge(part, node, scope, groups))

    def group(self, scope: Scope, groups: Groups) -> None:
        if groups is None:
            return
        if isinstance(groups, str):
            self.break_scope(scope, groups)
            return
        seen = [one for part in groups if (one := scope.see(part)) is not None]
        if scope.live and (missing := scope.find_missing(self.key, seen)):
            self.break_scope(scope, f"a GROUP BY lacks `{missing}`")
        scope.carriers = {key: {one.ref for one in seen if scope.holds(one, key)} for key in scope.carriers}

    def windows(self, scope: Scope, clauses: list[exp.Expr]) -> None:
        for part in own_nodes(clauses):
            if isinstance(part, exp.Window) and part.arg_key != "windows":
                listed = window_part(part, "partition_by")
                seen = [
                    one
                    for column in (listed if isinstance(listed, list) else [])
                    if (one := scope.see(column)) is not None
                ]
                if scope.live and (missing := scope.find_missing(self.key, seen)):
                    self.break_scope(scope, f"a window is not partitioned by `{missing}`")

    def set_operation(
        self, node: exp.SetOperation, environment: Environment, outer: tuple[Scope, ...]
    ) -> Rows:
        left = self.query(node.this, environment, outer)
        right = self.query(node.expression, environment, outer)
        # Spark casts the branches to one type, so only a type that both have is known.
        others = dict(zip(left.order or (), right.order or (), strict=False))
        types = {
            name: type_
            if name in others and right.type_of(others[name]) == type_
            else f"{self.fresh()}.{name}"
            for name, type_ in left.types.items()
        }
        result = Rows(
            types=types,
            complete=left.complete,
            order=left.order,
            names=left.names,
            origin=self.fresh(),
            live=left.live | right.live,
        )
        if node.args.get("distinct") and left.order and len(set(left.order)) == len(left.order):
            result = replace(result, unique=(frozenset(left.order),))
        if not isinstance(node, exp.Union) or node.args.get("by_name") or node.args.get("on"):
            return self.broken(result, "it is read in INTERSECT, EXCEPT or BY NAME")
        if not right.live:
            carriers: Mapping[str, frozenset[str]] = left.carriers
        elif left.order is None or right.order is None or len(left.order) != len(right.order):
            return self.broken(result, "it is read in a UNION whose columns are not all known")
        else:
            carriers = {key: _held_in_both(left, right, key) for key in self.key}
        if result.live and (missing := next((key for key in self.key if not carriers.get(key)), None)):
            return self.broken(result, f"the branches of a UNION do not all pass `{missing}` on in one place")
        return replace(result, carriers=carriers)


def _has_more(node: exp.Expr) -> bool:
    """Whether an element of FROM is more than a table or a query: a join in brackets, a pivot, a sample."""
    return any(node.args.get(part) for part in ("joins", "pivots", "sample", "laterals"))


def _held_in_both(left: Rows, right: Rows, key: str) -> frozenset[str]:
    """The left names of the positions where every branch that has the key holds it, with the same type."""
    held = set()
    order = left.order or ()
    for name, other in zip(order, right.order or (), strict=True):
        in_left = not left.live or (
            name in left.carriers.get(key, ()) and left.type_of(name) == right.type_of(other)
        )
        if name and in_left and other in right.carriers.get(key, ()):
            held.add(name)
    return frozenset(name for name in held if order.count(name) == 1)
