"""What is known of a table's columns before it is read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The columns of a table.

    Proofs rest on what is declared alone: a file that comes or goes must not make a project right or wrong. `names`, which may come from
    the files present, serves to find misspelt names.
    """

    types: Mapping[str, str | None]
    """The declared columns, in order: the type each is stored as, or None where that is not known."""
    complete: bool
    """Whether the declaration leaves room for no others."""
    other_type: str | None = None
    """The type of the others: those of CSV are strings."""
    names: frozenset[str] | None = None
    """All columns there are, where that can be told."""

    unique: tuple[tuple[str, ...], ...] = ()
    """Lists of columns that tell every row from every other, NULL being a value like any."""

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by position; empty where that is not known."""
        return tuple(self.types) if self.complete else ()

    def may_have(self, column: str) -> bool:
        return self.names is None or column in self.names

    def type_of(self, column: str) -> str | None:
        """The type a column is stored as, where that is known."""
        return self.types.get(column, self.other_type)


NOTHING = Known(types={}, complete=False)
