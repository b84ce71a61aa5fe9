"""Rows and scopes: what a SELECT can see, and which of its columns still hold an input's key unchanged.

The question behind it all: does `WHERE key IN scope` over the result give the same rows when it is also put on the inputs? So each set
of rows knows its *live* inputs (restricting them is right as long as the key is), and for each key column its *carriers*: the columns
that hold it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

Ref = tuple[str, str]
"""(alias, column)"""
OF = " of "
"""In the type of what tells partitions apart: `local_date of timestamp`."""


class Steps(Protocol):
    """What tells partitions apart, of one partitioned job: see `finer`."""

    @property
    def column(self) -> str:
        """The key column that it is about: the partition's."""

    def find(self, node: exp.Expr) -> tuple[exp.Column, str] | None:
        """The column that such an expression is made of, and its name."""

    def takes(self, type_: str) -> bool:
        """Whether it tells partitions apart for a column of this type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An expression that is a source's column and nothing else, or that tells its partitions apart (`finer`)."""

    ref: Ref
    type: str
    finer: bool = False


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
    unique: tuple[frozenset[str], ...] = ()
    """Sets of columns that tell every row from every other, NULL being a value like any. An empty one: there is one row at most."""

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
            unique=tuple(
                frozenset(new[name] for name in names) for names in self.unique if names <= new.keys()
            ),
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
    using: dict[str, list[str]] = field(default_factory=dict)
    """By the joined source: the columns of its USING. They come first in a `*`."""
    equal: list[tuple[Ref, Ref]] = field(default_factory=list)
    """Pairs of columns of one type: where a join goes by the first one, it has found the second one equal."""
    carriers: dict[str, set[Ref]] = field(default_factory=dict)
    live: frozenset[str] = frozenset()
    steps: Steps | None = None

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

    def see(self, node: exp.Expr | None) -> Seen | None:
        """The column that an expression is, or whose partitions it tells apart."""
        if (ref := self.resolve(node)) is not None:
            return Seen(ref=ref, type=self.type_of(ref))
        found = self.steps.find(node) if self.steps is not None and node is not None else None
        ref = self.resolve(found[0]) if found is not None else None
        if self.steps is None or found is None or ref is None or not self.steps.takes(self.type_of(ref)):
            return None
        return Seen(ref=ref, type=f"{found[1]}{OF}{self.type_of(ref)}", finer=True)

    def speaks_of(self, seen: Seen, column: str) -> bool:
        """Whether what is seen can hold this key column: what tells partitions apart holds the partition's alone."""
        return not seen.finer or (self.steps is not None and self.steps.column == column)

    def holds(self, seen: Seen, column: str) -> bool:
        return seen.ref in self.carriers.get(column, ()) and self.speaks_of(seen, column)

    def lacking(self, key: tuple[str, ...], seen: list[Seen]) -> str | None:
        """The first key column that none of these holds."""
        return next((column for column in key if not any(self.holds(one, column) for one in seen)), None)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.And, exp.Paren)):
        yield from conjuncts(node.this)
        yield from conjuncts(node.args.get("expression"))
    elif node is not None:
        yield node


def equal_columns(scope: Scope, condition: exp.Expr | None) -> Iterator[tuple[Seen, Seen]]:
    """The pairs of columns that a condition says are equal, each both ways round."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
            one, other = scope.see(part.this), scope.see(part.expression)
            if one and other:
                yield one, other
                yield other, one


def same(one: Seen, other: Seen) -> bool:
    """Equal by `=` means equal as a key: the same type on both sides, and no implicit cast; none where 0.0 equals -0.0."""
    return one.type == other.type != "double"


def own_nodes(roots: list[exp.Expr], skip: tuple[type[exp.Expr], ...] = (exp.Query,)) -> Iterator[exp.Expr]:
    """Everything in these clauses, down to nested queries, which are given but not entered."""
    for root in roots:
        yield root
        if not isinstance(root, skip):
            yield from own_nodes(list(root.iter_expressions()), skip)
