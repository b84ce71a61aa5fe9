"""What is known of a table's columns before it is read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The columns of a table.

    Proofs use only what is declared: a file that comes or goes must not make a project valid or invalid.
    `names`, which may come from the files present, is used to find misspelt names.
    """

    types: Mapping[str, str | None]
    """The declared columns, in order: the type each is stored as, or None if it is unknown."""
    complete: bool
    """Whether the table has no columns but the declared ones."""
    other_type: str | None = None
    """The type of the other columns: in CSV they are strings."""
    names: frozenset[str] | None = None
    """All existing columns, where they are known."""

    unique: tuple[tuple[str, ...], ...] = ()
    """Lists of columns whose values differ between any two rows, where NULL is a value like any other."""

    row_key: tuple[str, ...] = ()
    """The columns that name a row to subscribers. Empty if nothing does."""

    always_named: bool = False
    """No column of the row key is ever NULL."""

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by position. Empty if that is not known."""
        return tuple(self.types) if self.complete else ()

    def may_have(self, column: str) -> bool:
        return self.names is None or column in self.names

    def type_of(self, column: str) -> str | None:
        """The type a column is stored as, where it is known."""
        return self.types.get(column, self.other_type)


NOTHING = Known(types={}, complete=False)
