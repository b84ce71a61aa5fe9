"""What is known of a table's columns before it is read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The columns of a table, as far as they can be told from declarations and from the files present."""

    types: Mapping[str, str | None]
    """By name, in order: the type it is stored as, or None where that is not known."""
    complete: bool
    """Whether there are no others."""
    other_type: str | None = None
    """The type of the others: those of CSV are strings."""


NOTHING = Known(types={}, complete=False)
