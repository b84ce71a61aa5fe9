"""One change of a published dataset, as a trigger reads it from the change log."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """The operation of a change."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    RESET = "RESET"
    """The log cannot tell what changed: the rows are taken as existing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The net change of one row by one commit."""

    version: int
    position: int
    operation: Change
    key: str
    source_timestamp: int
    data: str
    """The row as JSON. Of a DELETE, the last one."""
    row: Mapping[str, object] | None
    """The values of the row after the change. None if it was deleted."""
    old: Mapping[str, object] | None
    """The values before the change. None if there was no row."""
    told: bool
    """The trigger was declared when the commit was made. Otherwise the change only sets its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingRow:
    """A row as it is now, for a trigger that takes rows as existing."""

    key: str
    source_timestamp: int
    data: str
    row: Mapping[str, object]
