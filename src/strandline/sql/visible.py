"""Rows and scopes: what a SELECT can see, and which of its columns still hold an input's key unchanged.

The question is always the same: does `WHERE key IN scope` over the result give the same rows when it is also
applied to the inputs? So each set of rows knows its *live* inputs, those that may be restricted to the same
keys, and the *carriers* of each key column: the columns that hold it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

Ref = tuple[str, str]
"""(alias, column)"""
OF = " of "
"""Part of the type name of an expression that separates partitions: `local_date of timestamp`."""


class Steps(Protocol):
    """Expressions that separate the partitions of one partitioned job: see `partition_expressions`."""

    @property
    def column(self) -> str:
        """The key column they concern: the partition's."""

    def find(self, node: exp.Expr) -> tuple[exp.Column, str] | None:
        """The column inside such an expression, and the expression's name."""

    def takes(self, type_: str) -> bool:
        """Whether the expressions separate partitions when applied to a column of this type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An expression that is just a source's column, or one that separates its partitions (`finer`)."""

    ref: Ref
    type: str
    finer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a table, CTE, subquery or SELECT."""

    types: Mapping[str, str]
    """The type of each column, or a name for the unknown type of one column of one table."""
    complete: bool
    order: tuple[str, ...] | None = None
    """The columns by position, where known. A name may occur twice or be empty."""
    names: frozenset[str] | None = None
    """All columns, including those known only from the files present."""
    origin: str
    other_type: str | None = None
    carriers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    live: frozenset[str] = frozenset()
    unique: tuple[frozenset[str], ...] = ()
    """Sets of columns whose values differ between any two rows, where NULL is a value like any other.

    An empty set means that there is at most one row.
    """

    def type_of(self, column: str) -> str:
        return self.types.get(column) or self.other_type or f"{self.origin}.{column}"

    def without_key(self) -> "Rows":
        return replace(self, carriers={}, live=frozenset())

    def renamed(self, columns: list[str]) -> "Rows | None":
        """The rows under the names of `alias(a, b)`. None if positions are not known."""
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
    """The sources of one SELECT that have been joined so far."""

    sources: dict[str, Rows] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Right sides of semi and anti joins: only their own ON sees them."""
    merged: dict[str, Ref] = field(default_factory=dict)
    """Columns of USING: one column of that name remains, the left one."""
    using: dict[str, list[str]] = field(default_factory=dict)
    """The USING columns of each joined source. They come first in a `*`."""
    equal: list[tuple[Ref, Ref]] = field(default_factory=list)
    """Pairs of columns of one type. A join on the first has made the second equal to it."""
    carriers: dict[str, set[Ref]] = field(default_factory=dict)
    live: frozenset[str] = frozenset()
    steps: Steps | None = None

    def resolve(self, node: exp.Expr | None) -> Ref | None:
        """The source's column that an expression consists of, if it is just a column and that is certain."""
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
        # If a second source had the column too, Spark would refuse the name as ambiguous.
        owners = [alias for alias, rows in visible.items() if name in rows.types]
        if len(owners) == 1:
            return owners[0], name
        if not owners and len(visible) == 1:
            return next(iter(visible)), name
        return None

    def lose_key(self) -> None:
        """Forbid any restriction in this scope from here on."""
        self.live, self.carriers = frozenset(), {}

    def type_of(self, ref: Ref) -> str:
        return self.sources[ref[0]].type_of(ref[1])

    def see(self, node: exp.Expr | None) -> Seen | None:
        """The column that an expression consists of, or whose partitions it separates."""
        if (ref := self.resolve(node)) is not None:
            return Seen(ref=ref, type=self.type_of(ref))
        step = self.steps.find(node) if self.steps is not None and node is not None else None
        ref = self.resolve(step[0]) if step is not None else None
        if self.steps is None or step is None or ref is None or not self.steps.takes(self.type_of(ref)):
            return None
        return Seen(ref=ref, type=f"{step[1]}{OF}{self.type_of(ref)}", finer=True)

    def may_hold(self, seen: Seen, column: str) -> bool:
        """Whether it can hold this key column. What separates partitions holds only the partition column."""
        return not seen.finer or (self.steps is not None and self.steps.column == column)

    def holds(self, seen: Seen, column: str) -> bool:
        return seen.ref in self.carriers.get(column, ()) and self.may_hold(seen, column)

    def find_missing(self, key: tuple[str, ...], seen: list[Seen]) -> str | None:
        """The first key column that none of these holds."""
        return next((column for column in key if not any(self.holds(one, column) for one in seen)), None)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.And, exp.Paren)):
        yield from conjuncts(node.this)
        yield from conjuncts(node.args.get("expression"))
    elif node is not None:
        yield node


def equal_columns(scope: Scope, condition: exp.Expr | None) -> Iterator[tuple[Seen, Seen]]:
    """The pairs of columns that a condition makes equal, each in both orders."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
            one, other = scope.see(part.this), scope.see(part.expression)
            if one and other:
                yield one, other
                yield other, one


def same(one: Seen, other: Seen) -> bool:
    """Whether equal by `=` means equal as a key.

    It does if both sides have the same type, so that nothing is cast. It does not for doubles, where 0.0
    equals -0.0.
    """
    return one.type == other.type != "double"


def own_nodes(roots: list[exp.Expr], skip: tuple[type[exp.Expr], ...] = (exp.Query,)) -> Iterator[exp.Expr]:
    """Everything in these clauses down to nested queries, which are yielded but not entered."""
    for root in roots:
        yield root
        if not isinstance(root, skip):
            yield from own_nodes(list(root.iter_expressions()), skip)
