"""A query as a whole: its relations, what their columns are, and the clauses around its expressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from .building import Typed, canonical, replace_arguments
from .casts import cast
from .expressions import Expressions
from .notes import RUNS_AS_WRITTEN, Note
from .parse import expression_text, find_foreign, parse, write
from .scope import Scope, Source, matches
from .types import Columns, SparkType, widest

_UNTYPED = "of columns whose types are not known here or not compared with Spark's"
_ARBITRARY = "without ORDER BY it is not determined which rows are returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A query for DataFusion, with notes on what may still be answered differently from Spark."""

    sql: str
    notes: tuple[Note, ...]
    limit: int | None = None
    """A LIMIT without an order: an answer with this many rows is an arbitrary choice."""

    def notes_for(self, rows: int) -> tuple[Note, ...]:
        cut = self.limit is not None and 0 < self.limit <= rows
        return (*self.notes, *((Note("LIMIT", _ARBITRARY),) if cut else ()))


def rewrite(sql: str, tables: Mapping[str, Columns]) -> Rewritten:
    """What to run for a query over tables of these columns."""
    tree = parse(sql)
    if tree is None:
        return Rewritten(sql=sql, notes=(Note("this query", RUNS_AS_WRITTEN),))
    if (foreign := find_foreign(tree)) is not None:
        return Rewritten(sql=sql, notes=(Note(foreign.upper(), RUNS_AS_WRITTEN),))
    relations = _Relations(tables)
    relations.query(tree, None, {})
    notes = relations.expressions.notes
    if any(i.args.get("quoted") and _in_double_quotes(sql, i.name) for i in tree.find_all(exp.Identifier)):
        notes.append(
            Note('"..."', "it names a column or table, in Spark it is a text; backticks name one in both")
        )
    return Rewritten(sql=write(tree), notes=tuple(dict.fromkeys(notes)), limit=relations.limit)


def _in_double_quotes(sql: str, name: str) -> bool:
    return f'"{name}"' in sql


class _Relations:
    """Rewrites a tree in place."""

    def __init__(self, tables: Mapping[str, Columns]) -> None:
        self._tables = {name.lower(): columns for name, columns in tables.items()}
        self._names = {name.lower(): name for name in tables}
        self._ctes: dict[str, Columns | None] = {}
        self.expressions = Expressions(subquery=self._scalar)
        self.limit: int | None = None

    def query(self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Columns | None:
        """Rewrite a query. Returns its columns, if they are known."""
        known = self._with(node, outer, ctes)
        if isinstance(node, exp.Subquery):
            columns = self.query(node.this, outer, known)
            self._clauses_of_whole(node, columns)
            return columns
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, known)
        if isinstance(node, exp.Select):
            return self._select(node, outer, known)
        self.expressions.note(type(node).__name__.upper())
        return None

    def _scalar(self, node: Any, scope: Scope) -> SparkType | None:
        columns = self.query(node, scope, self._ctes)
        return columns[0][1] if columns and len(columns) == 1 else None

    def _with(
        self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]
    ) -> Mapping[str, Columns | None]:
        clause = node.args.get("with_")
        known = dict(ctes)
        if clause is None:
            return known
        if clause.args.get("recursive"):
            self.expressions.note("WITH RECURSIVE")
        for cte in clause.expressions:
            name = cte.alias.lower()
            if clause.args.get("recursive"):
                known[name] = None
            columns = self.query(cte.this, outer, known)
            known[name] = None if clause.args.get("recursive") else _renamed(columns, cte.args["alias"])
        return known

    def _set_operation(
        self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]
    ) -> Columns | None:
        left, right = (self.query(side, outer, ctes) for side in (node.left, node.right))
        if node.args.get("by_name"):
            self.expressions.note("UNION BY NAME")
            return None
        columns = self._united(node, left, right)
        self._clauses_of_whole(node, columns)
        return columns

    def _united(self, node: Any, left: Columns | None, right: Columns | None) -> Columns | None:
        word = type(node).__name__.upper()
        if left is None or right is None or len(left) != len(right):
            self.expressions.note(word, _UNTYPED)
            return left
        kinds: list[SparkType | None] = []
        for place, ((_, one), (_, two)) in enumerate(zip(left, right, strict=True)):
            common = widest(one, two) if one is not None and two is not None else None
            if common is None or not (
                _retype(node.left, place, one, common) and _retype(node.right, place, two, common)
            ):
                self.expressions.note(word, _UNTYPED)
                common = None
            kinds.append(common)
        return [(name, kind) for (name, _), kind in zip(left, kinds, strict=True)]

    def _clauses_of_whole(self, node: Any, columns: Columns | None) -> None:
        """ORDER BY and LIMIT of a set operation, or of a query in brackets."""
        order = node.args.get("order")
        if order is not None:
            scope = Scope([Source("", columns)])
            for item in order.expressions:
                kind = self._kind_of_order(item.this, scope, columns)
                if kind is None or kind.is_floating or not kind.is_scalar:
                    self.expressions.note("ORDER BY", _UNTYPED)
        self._limit(node)

    def _kind_of_order(self, item: Any, scope: Scope, columns: Columns | None) -> SparkType | None:
        if isinstance(item, exp.Literal) and not item.is_string and columns is not None:
            place = int(item.name) - 1 if item.name.isdigit() else -1
            return columns[place][1] if 0 <= place < len(columns) else None
        return scope.find(item)[1] if isinstance(item, exp.Column) else None

    def _limit(self, node: Any) -> None:
        limit = node.args.get("limit")
        if limit is None or node.args.get("order") is not None:
            return
        rows = limit.expression
        at_top = node.parent is None
        if (
            at_top
            and isinstance(rows, exp.Literal)
            and rows.name.isdigit()
            and node.args.get("offset") is None
        ):
            self.limit = int(rows.name)
        else:
            self.expressions.note("LIMIT", _ARBITRARY)

    def _select(self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Columns | None:
        before, self._ctes = self._ctes, dict(ctes)
        try:
            scope = Scope(self._sources(node, outer, ctes), outer)
            self._joins_on(node, scope)
            if (where := node.args.get("where")) is not None:
                where.set("this", self.expressions.condition(where.this, scope))
            columns, values = self._projections(node, scope)
            self._grouping(node, scope, values)
            self._ordering(node, scope, columns, values)
            if windows := node.args.get("windows"):
                node.set("windows", [self.expressions.named_window(window, scope) for window in windows])
            self._limit(node)
            _read_something(node, scope)
            return columns
        finally:
            self._ctes = before

    def _sources(self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> list[Source]:
        sources = []
        if (first := node.args.get("from_")) is not None:
            sources.append(self._source(first.this, outer, ctes))
        for join in node.args.get("joins") or []:
            source = self._source(join.this, outer, ctes)
            if str(join.args.get("kind") or "").upper() not in ("SEMI", "ANTI"):
                sources.append(source)
            else:
                sources.append(Source(source.alias, source.columns))
            if join.args.get("method"):
                self.expressions.note(f"{join.args['method']} JOIN".upper())
        return sources

    def _source(self, node: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Source:
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery):
            columns = self.query(node, outer, ctes)
            return Source(node.alias, _renamed(columns, alias))
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("db"):
            name = node.name.lower()
            if name not in ctes and name in self._names:
                node.set("this", exp.to_identifier(self._names[name], quoted=True))
                node.set("alias", alias or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
            columns = ctes[name] if name in ctes else self._tables.get(name)
            if columns is None:
                self.expressions.note(node.name, "the types of its columns are not known here")
            return Source(node.alias_or_name, _renamed(columns, alias))
        self.expressions.note(expression_text(node))
        return Source(node.alias_or_name, None)

    def _joins_on(self, node: Any, scope: Scope) -> None:
        for number, join in enumerate(node.args.get("joins") or [], 1):
            if (condition := join.args.get("on")) is not None:
                join.set("on", self.expressions.condition(condition, scope))
            if using := join.args.get("using"):
                self._using(node, join, using, scope.sources[:number], scope.sources[number])

    def _using(self, node: Any, join: Any, using: Any, left: list[Source], right: Source) -> None:
        """Columns that both sides have.

        They get one type and the left value, so that it does not matter whose is used.
        """
        for column in using:
            kinds = {kind for s in (*left, right) for name, kind in s.columns or () if matches(column, name)}
            if len(kinds) != 1 or None in kinds:
                self.expressions.note("USING", _UNTYPED)
        if str(join.args.get("side") or "").upper() in ("FULL", "RIGHT"):
            self.expressions.note(
                "USING", "whose value the column has in an outer join is not compared with Spark's"
            )
        first = [name for name, _ in (left[0].columns or ())[: len(using)]]
        if any(isinstance(e, exp.Star) for e in node.expressions) and [c.name.lower() for c in using] != [
            n.lower() for n in first
        ]:
            self.expressions.note("SELECT *", "with USING Spark shows the joined columns first")

    def _projections(self, node: Any, scope: Scope) -> tuple[Columns | None, list[tuple[str, Typed]] | None]:
        """The columns of a SELECT and, if it has no star, the name and value of each."""
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            self.expressions.note("DISTINCT ON")
        columns: list[tuple[str, SparkType | None]] | None = []
        values: list[tuple[str, Typed]] | None = []
        items = []
        for item in node.expressions:
            star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
            if isinstance(star, exp.Star):
                spread = self._spread(star, item.table if isinstance(item, exp.Column) else "", scope)
                columns = [*columns, *spread] if columns is not None and spread is not None else None
                values = None
                items.append(item)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            value = self.expressions.build(inner, scope)
            if isinstance(item, exp.Alias):
                name = item.alias
                items.append(replace_arguments(item, this=value.node.copy()))
            elif isinstance(inner, exp.Column) and isinstance(value.node, exp.Column):
                name = value.node.name
                items.append(value.node.copy())
            else:
                name = expression_text(inner)
                items.append(exp.Alias(this=value.node.copy(), alias=exp.to_identifier(name, quoted=True)))
            scope.aliases.setdefault(name.lower(), value.type)
            columns = [*columns, (name, value.type)] if columns is not None else None
            values = [*values, (name, value)] if values is not None else None
        node.set("expressions", items)
        if distinct is not None and any(
            kind is None or not kind.is_scalar for _, kind in columns or [("", None)]
        ):
            self.expressions.note("DISTINCT", _UNTYPED)
        return columns, values

    def _spread(self, star: Any, owner: str, scope: Scope) -> Columns | None:
        """The columns that a star stands for."""
        if star.args.get("replace") or star.args.get("rename"):
            self.expressions.note("SELECT *", "with REPLACE or RENAME it is not compared with Spark's")
            return None
        left_out = [c.name.lower() for c in star.args.get("except_") or []]
        columns: list[tuple[str, SparkType | None]] = []
        for source in scope.sources:
            if not owner or source.alias.lower() == owner.lower():
                if source.columns is None:
                    return None
                columns += [(name, kind) for name, kind in source.columns if name.lower() not in left_out]
        return columns

    def _grouping(self, node: Any, scope: Scope, values: list[tuple[str, Typed]] | None) -> None:
        group = node.args.get("group")
        if group is not None:
            if any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets")):
                self.expressions.note("GROUPING SETS")
            group.set("expressions", [self._grouped(item, scope, values) for item in group.expressions])
        if (having := node.args.get("having")) is not None:
            having.set("this", self.expressions.condition(having.this, scope))

    def _grouped(self, item: Any, scope: Scope, values: list[tuple[str, Typed]] | None) -> exp.Expression:
        if isinstance(item, exp.Rollup | exp.Cube):
            return replace_arguments(
                item, expressions=[self._grouped(part, scope, values) for part in item.expressions]
            )
        if isinstance(item, exp.Literal) and not item.is_string:
            place = int(item.name) - 1 if item.name.isdigit() else -1
            kind = values[place][1].type if values is not None and 0 <= place < len(values) else None
            node: exp.Expression = item.copy()
        else:
            value = self.expressions.build(item, scope)
            node, kind = value.node.copy(), value.type
        if kind is None or not kind.is_scalar:
            self.expressions.note("GROUP BY", _UNTYPED)
        return node

    def _ordering(
        self, node: Any, scope: Scope, columns: Columns | None, values: list[tuple[str, Typed]] | None
    ) -> None:
        order = node.args.get("order")
        if order is None:
            return
        output = Scope([Source("", columns)], scope) if columns is not None else scope
        items = []
        for item in order.expressions:
            if isinstance(item.this, exp.Literal) and not item.this.is_string:
                value = self._placed(item.this, columns, values)
            else:
                value = self.expressions.build(
                    item.this, scope if isinstance(item.this, exp.Column) and item.this.table else output
                )
            if value.type is None or not value.type.is_scalar:
                self.expressions.note("ORDER BY", _UNTYPED)
            if value.type is not None and value.type.is_floating and node.args.get("distinct") is not None:
                self.expressions.note(
                    "ORDER BY", "with DISTINCT, -0.0 sorts before 0.0; in Spark they are equal"
                )
                items.append(replace_arguments(item, this=value.node.copy()))
            else:
                items.append(replace_arguments(item, this=canonical(value).copy()))
        order.set("expressions", items)

    def _placed(self, item: Any, columns: Columns | None, values: list[tuple[str, Typed]] | None) -> Typed:
        """`ORDER BY 2`: the column itself if its numbers need care, else the position as written."""
        place = int(item.name) - 1 if item.name.isdigit() else -1
        if columns is None or not 0 <= place < len(columns):
            return Typed(item, None)
        name, kind = columns[place]
        if kind is not None and kind.is_floating and values is not None:
            plain = values[place][1].node
            return Typed(plain if isinstance(plain, exp.Column) else exp.column(name, quoted=True), kind)
        return Typed(item, kind, item.name)


def _read_something(node: Any, scope: Scope) -> None:
    """Name a column in a SELECT that names none.

    delta-rs ignores the LIMIT of a scan that reads no column.
    """
    known = [(s.alias, s.columns[0][0]) for s in scope.sources if s.columns]
    if not known or next(node.find_all(exp.Column, exp.Star), None) is not None:
        return
    column = exp.column(known[0][1], known[0][0], quoted=True)
    missing = exp.Is(this=column, expression=exp.Null())
    either = exp.Paren(this=exp.Or(this=missing, expression=exp.Not(this=exp.Paren(this=missing.copy()))))
    where = node.args.get("where")
    node.set(
        "where",
        exp.Where(this=exp.And(this=where.this.copy(), expression=either) if where is not None else either),
    )


def _renamed(columns: Columns | None, alias: Any) -> Columns | None:
    """The columns under the names of `AS t(a, b)`."""
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if columns is None or not names:
        return columns
    new_names = [name.name for name in names]
    return [(new_names[i] if i < len(new_names) else name, kind) for i, (name, kind) in enumerate(columns)]


def _retype(query: Any, place: int, kind: SparkType | None, target: SparkType) -> bool:
    """Cast one column of a SELECT, so that both sides of a set operation have one type."""
    if kind == target or (kind is not None and kind.is_integer and target.is_integer):
        return True
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select) or any(e.find(exp.Star) for e in query.expressions) or kind is None:
        return False
    item = query.expressions[place]
    name = item.alias_or_name
    node = cast(Typed(item.this if isinstance(item, exp.Alias) else item, kind), target)
    if node is None or query.args.get("distinct") is not None:
        return False
    items = list(query.expressions)
    items[place] = exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))
    query.set("expressions", items)
    return True
