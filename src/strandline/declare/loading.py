"""The state of loading one project: what its sections have contributed so far, by name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from strandline.model.columns import TimeUnit
from strandline.model.endpoints import Endpoint
from strandline.model.errors import Place
from strandline.model.node import Node
from strandline.model.project import Calendar, FileFormat
from strandline.model.report import Report
from strandline.sql.known_columns import Known

from .names import NameRegistry
from .settings import Secrets
from .yaml_lines import DataPath, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a dataset needs to know about its source, for any kind of source."""

    name: str
    format: FileFormat
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKey:
    """The key of a job's rows, as declared for its output."""

    columns: tuple[str, ...]
    output_place: Place
    place: Place


class Draft(Protocol):
    """An entry that may read the output of any other. It is built after everything that it reads."""

    @property
    def place(self) -> Place: ...

    @property
    def reads(self) -> tuple[str, ...]: ...

    @property
    def guessed(self) -> Collection[str]:
        """The names in `reads` that replace a misspelt name."""
        ...

    def settle(self, loading: "Loading") -> "Draft":
        """Report inputs that do not exist, and continue with the nearest name instead.

        Called once, after every section was loaded: all tables are known.
        """
        ...

    def build(self, loading: "Loading") -> None:
        """Check how it relates to its inputs, and add its node.

        Called once, after everything that it reads was built.
        """
        ...


@dataclass(slots=True, kw_only=True)
class Loading:
    document: Document
    folder: Path
    report: Report
    registry: NameRegistry
    calendar: Calendar
    secrets: Secrets
    entries: Mapping[str, Mapping[Any, Any]]
    """By section: its valid entries, by name or by place in the list."""
    written: Mapping[str, frozenset[str]]
    """By section: the names of all its entries, including invalid ones."""
    follow_ups: Mapping[DataPath, frozenset[str]]
    """By entry: slugs of mistakes that would only follow from a value that was reported and left out."""
    nodes: list[Node] = field(default_factory=list)
    """Inputs before readers."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By what a user may type: the nodes that it means."""
    tables: dict[str, str] = field(default_factory=dict)
    """By SQL name: the node that maintains the table."""
    known: dict[str, Known] = field(default_factory=dict)
    """By SQL name: what is known about the table's columns."""
    offers: dict[str, Offer] = field(default_factory=dict)
    """By source: what datasets need to know about it."""
    source_names: frozenset[str] = frozenset()
    """The names of all sources, including invalid ones."""
    row_keys: dict[str, RowKey] = field(default_factory=dict)
    """By output of a job: the key that is declared for it."""
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    """By name: where webhooks are sent."""
    lake_is_local: bool = True
    """Whether the lake is a folder of this machine."""
    drafts: dict[str, Draft] = field(default_factory=dict)
    """By output: the entries that are built last, each one after what it reads."""

    @property
    def right(self) -> bool:
        """Whether there is no mistake so far. No node is built for a project with mistakes."""
        return not len(self.report)

    def report_of(self, *path: str | int) -> Report:
        """The report for an entry. It ignores mistakes that only follow from one already reported."""
        return self.report.without(self.follow_ups.get(path, ()))

    def get_time_unit(self, table: str) -> TimeUnit:
        """The unit in which a table that was built before counts when its rows happened."""
        return next(node.traits.time_unit for node in self.nodes if node.name == self.tables[table])

    def add_table(self, name: str, node: str, known: Known) -> None:
        self.tables[name] = node
        self.known[name] = known

    def mark_broken(self, *names: str) -> None:
        """Note that the entries with these names have mistakes: reading one is not another mistake."""
        self.registry.broken |= set(names)
