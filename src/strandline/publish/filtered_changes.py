"""What a condition makes of a change: a row enters, leaves, or stays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from strandline.model.columns import STRING, ColumnType
from strandline.model.condition_truth import is_true
from strandline.model.conditions import EVERY_ROW, Condition, find_columns
from strandline.model.typed_values import find_stored_type

from .changes import Change
from .trigger.typed_rows import read_typed

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PublishedChange:
    """A change of the log, with its rows as JSON has them."""

    cursor: str
    operation: Change
    key: str
    timestamp: str | None
    fields: tuple[str, ...]
    row: Row
    """The row after the change. Of a DELETE, the last one."""
    before: Row | None
    """The former values of `fields`. None for an INSERT."""
    letters: int = 0
    """The length of its rows as text."""

    @cached_property
    def old(self) -> Row | None:
        """The row before the change. None for an INSERT."""
        match self.operation:
            case Change.INSERT:
                return None
            case Change.DELETE:
                return self.row
            case _:
                return {**self.row, **(self.before or {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenChange:
    """A change as those see it who only know the rows for which a condition is true."""

    operation: Change
    key: str
    row: Row
    """Of a DELETE, the last one that they knew."""
    fields: tuple[str, ...]
    before: Row | None
    timestamp: str | None
    cursor: str | None
    """None for a row that is told before all rows of a state have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """A checked condition, with the types of the columns that it compares."""

    condition: Condition
    kinds: Mapping[str, ColumnType]

    def see(self, change: PublishedChange) -> SeenChange | None:
        """None if the row was not known before and is not known after the change."""
        old = change.old
        new = None if change.operation is Change.DELETE else change.row
        was, is_now = self._holds(old), self._holds(new)
        if was and is_now:
            return _see(change, change.operation, change.row, change.fields, change.before)
        if is_now:
            return _see(change, Change.INSERT, change.row, tuple(change.row), None)
        if was and old is not None:
            return _see(change, Change.DELETE, old, tuple(old), old)
        return None

    def _holds(self, row: Row | None) -> bool:
        if row is None:
            return False
        return self.condition == EVERY_ROW or is_true(self.condition, read_typed(row, self.kinds) or {})


def make_filter(condition: Condition, columns: Mapping[str, str]) -> RowFilter:
    """`columns` contains the types as Delta spells them. The condition was checked against them."""
    kinds = {name: find_stored_type(columns[name]) or STRING for name in find_columns(condition)}
    return RowFilter(condition=condition, kinds=kinds)


def _see(
    change: PublishedChange, operation: Change, row: Row, fields: tuple[str, ...], before: Row | None
) -> SeenChange:
    return SeenChange(
        operation=operation,
        key=change.key,
        row=row,
        fields=fields,
        before=before,
        timestamp=change.timestamp,
        cursor=change.cursor,
    )
