"""What is published: views, change logs and triggers, after every check."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from .conditions import Condition
from .errors import Place
from .kind import NodeKind

CHANGES_SUFFIX = "_changes"
MAX_EVENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKey:
    """The columns that name a row to subscribers."""

    columns: tuple[str, ...]
    always_named: bool = False
    """None of them is ever NULL."""
    types: tuple[tuple[str, str], ...] = ()
    """The columns of the dataset with their types, as Spark spells them. Empty if not all are declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """A column of a view, computed from the dataset's columns."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The rows of a dataset for which a condition is true, with calculated columns."""

    kind: ClassVar[NodeKind] = NodeKind("view")
    name: str
    place: Place
    dataset: str
    """The node whose rows it shows."""
    key: tuple[str, ...]
    """The row key of the dataset, which is that of the view."""
    where: Condition
    calculated: tuple[Calculated, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """The net changes of a dataset's rows, commit by commit."""

    kind: ClassVar[NodeKind] = NodeKind("changes")
    dataset: str
    key: tuple[str, ...]


class Existing(StrEnum):
    """What a trigger does with rows that were there before it."""

    QUIET = "quiet"
    DELIVER = "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A condition on published changes. Its events are a dataset."""

    kind: ClassVar[NodeKind] = NodeKind("trigger")
    name: str
    place: Place
    dataset: str
    """The node whose change log it reads."""
    key: tuple[str, ...]
    fire: Condition
    clear: Condition | None = None
    endpoints: tuple[str, ...] = ()
    existing: Existing = Existing.QUIET
    max_events: int = MAX_EVENTS
    """More events in one task are neither recorded nor sent."""
