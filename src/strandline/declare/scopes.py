"""Rows and scopes: what a SELECT can see, and which of its columns still hold an input's key unchanged.

The question behind it all: does `WHERE key IN scope` over the result give the same rows when it is also put on the inputs? So each set
of rows knows its *live* inputs (restricting them is right as long as the key is), and for each key column its *carriers*: the columns
that hold it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

Ref = tuple[str, str]
"""(alias, column)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a table, CTE, subquery or SELECT gives."""

    types: Mapping[str, str]
    """By column: its type, or a word that stands for the unknown type of one column of one table."""
    complete: bool
    order: tuple[str, ...] | None = None
    """The columns by position, where known. A name may stand twice or be empty."""
    names: frozenset[str] | None = None
    """All columns, also those that only the files present tell."""
    origin: str
    other_type: str | None = None
    carriers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    live: frozenset[str] = frozenset()

    def type_of(self, column: str) -> str:
        return self.types.get(column) or self.other_type or f"{self.origin}.{column}"

    def without_key(self) -> "Rows":
        return replace(self, carriers={}, live=frozenset())

    def renamed(self, columns: list[str]) -> "Rows | None":
        """As `alias(a, b)` names them; None when positions are not known."""
        if self.order is None or len(self.order) != len(columns):
            return None
        new = dict(zip(self.order, columns, strict=True))
        if len(new) != len(self.order):
            return None
        return replace(
            self,
            types={new[name]: self.type_of(name) for name in self.order},
            order=tuple(columns),
            names=frozenset(columns),
            carriers={key: frozenset(new[name] for name in names) for key, names in self.carriers.items()},
        )


def nothing_known(origin: str) -> Rows:
    return Rows(types={}, complete=False, origin=origin)


@dataclass
class Scope:
    """The sources of one SELECT, joined so far."""

    sources: dict[str, Rows] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Right sides of semi and anti joins: only their own ON sees them."""
    merged: dict[str, Ref] = field(default_factory=dict)
    """Columns of USING: one column of that name, the left one."""
    carriers: dict[str, set[Ref]] = field(default_factory=dict)
    live: frozenset[str] = frozenset()

    def resolve(self, node: exp.Expr | None) -> Ref | None:
        """The source's column that an expression is, when it is nothing but one and that is certain."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db"):
            return None
        name = node.name.lower()
        if table := node.table.lower():
            return (table, name) if table in self.sources else None
        if name in self.merged:
            return self.merged[name]
        visible = {alias: rows for alias, rows in self.sources.items() if alias not in self.hidden}
        # Were the column in a second source too, Spark would refuse the name as ambiguous.
        having = [alias for alias, rows in visible.items() if name in rows.types]
        if len(having) == 1:
            return having[0], name
        if not having and len(visible) == 1:
            return next(iter(visible)), name
        return None

    def lose_key(self) -> None:
        """From here on nothing of this scope may be restricted."""
        self.live, self.carriers = frozenset(), {}

    def type_of(self, ref: Ref) -> str:
        return self.sources[ref[0]].type_of(ref[1])

    def same(self, one: Ref, other: Ref) -> bool:
        """Equal by `=` means equal as a key: the same type, and none where 0.0 equals -0.0."""
        return self.type_of(one) == self.type_of(other) != "double"

    def lacking(self, key: tuple[str, ...], refs: set[Ref]) -> str | None:
        """The first key column that none of these holds."""
        return next((column for column in key if not self.carriers.get(column, set()) & refs), None)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.And, exp.Paren)):
        yield from conjuncts(node.this)
        yield from conjuncts(node.args.get("expression"))
    elif node is not None:
        yield node


def equal_columns(scope: Scope, condition: exp.Expr | None) -> Iterator[tuple[Ref, Ref]]:
    """The pairs of columns that a condition says are equal, each both ways round."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
            one, other = scope.resolve(part.this), scope.resolve(part.expression)
            if one and other:
                yield one, other
                yield other, one


def own_nodes(roots: list[exp.Expr], skip: tuple[type[exp.Expr], ...] = (exp.Query,)) -> Iterator[exp.Expr]:
    """Everything in these clauses, down to nested queries, which are given but not entered."""
    for root in roots:
        yield root
        if not isinstance(root, skip):
            yield from own_nodes(list(root.iter_expressions()), skip)
