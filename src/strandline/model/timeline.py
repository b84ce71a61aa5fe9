"""What a timeline is: facts folded into the history of each key, and that history valued on business dates.

One declaration gives two nodes. The first folds, the second values what the first wrote.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from .columns import ColumnType
from .errors import Place
from .kind import NodeKind
from .project import Module

DATE = "date"
"""The column of both outputs that contains the date of a row. Heads have none."""
EPOCH = "epoch"
"""The column of both outputs that contains the epoch which gave a row its values."""


class KeyStatus(StrEnum):
    """The states of a key of a timeline."""

    CURRENT = "CURRENT"
    REPROCESSING = "REPROCESSING"
    """A change of its past is known and not published yet."""
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column that is taken from the state of a fold."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldCode:
    """The function of the user's that folds the facts of one date into the state of a key."""

    file: str
    function: str
    code: str
    modules: tuple[Module, ...] = ()
    """The files of the project that it imports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Facts of each key, folded in the order of their dates."""

    kind: ClassVar[NodeKind] = NodeKind("timeline")
    name: str
    """As declared. The output dataset has another name."""
    place: Place
    output: str
    key: tuple[str, ...]
    facts: str
    """The node whose live rows are the facts."""
    date: str
    """The column of the facts that contains their date."""
    order_by: tuple[str, ...]
    fold: FoldCode
    fields: tuple[Field, ...]
    together: tuple[str, ...] = ()
    """Columns of the key. Keys with equal values in them are always published in one commit."""

    @property
    def row_key(self) -> tuple[str, ...]:
        """The key of a row of either output."""
        return (*self.key, DATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A column of a reference, and the value that it must be equal to."""

    theirs: str
    reference: str = ""
    """The reference above that contains the value. Empty for a column of the key, or a field."""
    ours: str

    def __str__(self) -> str:
        return f"{self.reference}.{self.ours}" if self.reference else self.ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A dataset in which a valuation looks something up."""

    name: str
    """The prefix of its columns in expressions."""
    dataset: str
    """The node whose live rows are looked up."""
    on: tuple[Match, ...]
    date: str = ""
    """Its date column: the latest row on or before a date counts. Empty: the live row, for every date."""
    required: bool = False
    """A date without a row in it gets no row."""
    columns: tuple[str, ...] = ()
    """Its columns that are read: those in expressions, and those by which other references match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuedColumn:
    """A column of a valuation, computed by a Spark SQL expression."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessDates:
    """The dates on which a timeline is valued: the live rows of a dataset, or all weekdays."""

    dataset: str = ""
    """The node. Empty for weekdays, Monday to Friday."""
    column: str = ""
    due_at: timedelta = timedelta()
    """How long after the local midnight that begins a date it is valued."""
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Valuation:
    """The history of a timeline, one row per key and business date, with values from references."""

    kind: ClassVar[NodeKind] = NodeKind("valuation")
    timeline: Timeline
    """Its inputs are the output of this timeline, the calendar and the references."""
    place: Place
    output: str
    calendar: BusinessDates
    references: tuple[Reference, ...] = ()
    """In the order in which they are looked up."""
    columns: tuple[ValuedColumn, ...] = ()
    where: str = ""
    """A condition in Spark SQL. A row for which it is not true is left out."""

    @property
    def code(self) -> str:
        """All SQL of the user, one expression per line."""
        return "\n".join([*(column.sql for column in self.columns), self.where])
