"""What one run works with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from strandline.catalog import Catalog
from strandline.lake.compaction import Compaction
from strandline.lake.location import Lake
from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import Operation, TableState, WrittenConfig
from strandline.model.leases import Lease
from strandline.model.node import Node, Project
from strandline.model.plan import Cursor, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.lake.work import Prepared, Shared, Write


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

    @classmethod
    def recorded(cls, nodes: Mapping[str, NodeRecord]) -> "Pins":
        """The versions that the catalog has recorded."""
        return cls(
            _cursors={n: Cursor(table_id=r.table_id, version=r.table_version) for n, r in nodes.items()},
            _rows={n: r.row_count for n, r in nodes.items()},
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


class Workers(Protocol):
    """Whoever computes and commits for a run: `dispatch/workers.py` with Spark, or a test's own."""

    def prepare(
        self,
        desk: "Desk",
        node: Node,
        task: Task,
        lease: Lease,
        record: NodeRecord | None,
        inputs: dict[str, Cursor],
        config: WrittenConfig,
    ) -> "Prepared":
        """Compute what a task will write."""
        ...

    def read_ahead(self, desk: "Desk", task: Task, written: frozenset[str]) -> None:
        """Read what a task will need, before it begins. `written` are the nodes that the run writes."""
        ...

    def hash_schema(self, write: "Write") -> str:
        """A digest of the columns and types of a write."""
        ...

    def commit_write(self, desk: "Desk", write: "Write", lease: Lease, metadata: str) -> None:
        """Commit a prepared write by the primitive that it names."""
        ...

    def commit_nothing(
        self, desk: "Desk", node: Node, lease: Lease, operation: Operation, **statements: Any
    ) -> None:
        """An empty commit with our token. `statements` are fields of its metadata: what it is for."""
        ...

    def commit_purge(self, desk: "Desk", node: Node, lease: Lease) -> None:
        """Remove the deleted rows of a table."""
        ...

    def commit_compaction(self, desk: "Desk", node: Node, lease: Lease, compaction: Compaction) -> None:
        """Write the same rows in fewer files."""
        ...

    def commit_statistics(self, desk: "Desk", node: Node, lease: Lease, columns: Sequence[str]) -> None:
        """Keep statistics of these columns in new files."""
        ...


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
    workers: Callable[[], Workers]
    """Called when there is work: Spark is imported there, not before."""
    pins: Pins
    shared: "Shared"
    scratch: str
    """A folder of the run's own, for what is computed before it is committed."""
    accept_guard: frozenset[str]
    """Nodes whose guard may be passed."""
    quiet: frozenset[str] = frozenset()
    """Triggers whose events are recorded without telling anybody."""
    batches: int | None = None
    """At most this many batches of each task. None for all."""
