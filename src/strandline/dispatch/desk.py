"""What one run works with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

from strandline.catalog import Catalog
from strandline.lake.location import Lake
from strandline.model.commits import TableState
from strandline.model.node import Project
from strandline.model.plan import Cursor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.lake.work import Shared


@dataclass(slots=True, kw_only=True)
class Pins:
    """The version of each table that this run's readers see: as observed, then as this run leaves it."""

    _cursors: dict[str, Cursor]
    _rows: dict[str, int]
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def observed(cls, tables: Mapping[str, TableState], rows: Mapping[str, int]) -> "Pins":
        return cls(
            _cursors={name: Cursor(table_id=t.table_id, version=t.version) for name, t in tables.items()},
            _rows=dict(rows),
        )

    def move(self, dataset: str, cursor: Cursor, rows: int) -> None:
        with self._lock:
            self._cursors[dataset] = cursor
            self._rows[dataset] = rows

    def get(self, dataset: str) -> Cursor:
        with self._lock:
            return self._cursors[dataset]

    def find(self, dataset: str) -> Cursor | None:
        with self._lock:
            return self._cursors.get(dataset)

    def rows(self, dataset: str) -> int:
        with self._lock:
            return self._rows.get(dataset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    project: Project
    catalog: Catalog
    lake: Lake
    run: str
    holder: str
    as_of: datetime
    now: Callable[[], datetime]
    session: Callable[[], "SparkSession"]
    pins: Pins
    shared: "Shared"
    accept_guard: frozenset[str]
    """Nodes whose guard may be passed."""
