"""The meaning of names at the place where they are used."""

from dataclasses import dataclass, field

from sqlglot import exp

from .types import Columns, SparkType


@dataclass(slots=True)
class Source:
    """One relation of a FROM clause: its alias, and its columns if they are known."""

    alias: str
    columns: Columns | None


@dataclass(slots=True)
class Scope:
    sources: list[Source]
    outer: "Scope | None" = None
    aliases: dict[str, SparkType | None] = field(default_factory=dict)
    """The names of expressions in the SELECT list. GROUP BY, HAVING and ORDER BY can use them."""

    def find(self, column: exp.Column) -> tuple[exp.Expression, SparkType | None]:
        """A column as the table spells it, and its type.

        A column that is not found is returned as written, for the engine to complain about.
        """
        here = [s for s in self.sources if not column.table or s.alias.lower() == column.table.lower()]
        hits = [
            (s.alias, name, kind)
            for s in here
            for name, kind in s.columns or ()
            if matches(column.this, name)
        ]
        if len(hits) == 1 and not column.args.get("db"):
            alias, name, kind = hits[0]
            return exp.column(name, alias if column.table else None, quoted=True), kind
        if hits or any(s.columns is None for s in here):
            return column, None
        if column.table and not here and (inside := self._find_field(column)):
            return column, inside
        if not column.table and column.name.lower() in self.aliases:
            return column, self.aliases[column.name.lower()]
        return self.outer.find(column) if self.outer else (column, None)

    def _find_field(self, column: exp.Column) -> SparkType | None:
        """`a.b` where `a` is a column and a struct."""
        owner = exp.Column(this=column.args["table"])
        kind = None if column.args.get("db") else self.find(owner)[1]
        inner = [t for name, t in kind.fields if matches(column.this, name)] if kind else []
        return inner[0] if len(inner) == 1 else None


def matches(identifier: exp.Expression, name: str) -> bool:
    """Names are compared without their case, as Spark does, unless they are quoted."""
    return identifier.name == name or (
        not identifier.args.get("quoted") and identifier.name.lower() == name.lower()
    )
