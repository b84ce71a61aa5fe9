"""What the planner is asked and what it may know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from strandline.model.catalog_records import CatalogView
from strandline.model.commits import TableState
from strandline.model.conditions import AllOf
from strandline.model.files import FileSeen
from strandline.model.own_clock import ColumnRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A request to run nodes again with the current configuration."""

    nodes: frozenset[str]
    only_stale: bool
    reason: str = ""
    partitions: tuple[str, ...] = ()
    filter: AllOf | None = None
    """A condition on the output's columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    as_of: datetime
    goes_back: bool = False
    """A person named this time, so clocks that have gone past it go back to it."""
    selected: frozenset[str] | None = None
    """Nodes that may be worked on; None for all."""
    backfill: Backfill | None = None
    release: str | None = None
    """A fact dataset whose quarantined positions are decoded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The world as it was observed once, before planning."""

    view: CatalogView
    tables: Mapping[str, TableState]
    listings: Mapping[str, tuple[FileSeen, ...]]
    business_dates: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """By node that is computed on the dates of a calendar: those dates."""
    ranges: Mapping[tuple[str, str], tuple[ColumnRange, ...]] = field(default_factory=dict)
    """By dataset and column that is compared with a moving border: its range in each file of the table."""
