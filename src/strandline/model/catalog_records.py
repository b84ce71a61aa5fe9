"""What the catalog records: nodes, their partitions, runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .commits import WrittenConfig
from .files import FileRead
from .kind import NodeKind
from .plan import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVersion:
    """One materialisation of one partition."""

    dataset: str
    partition_key: str
    version: datetime
    config_hash: str
    schema_hash: str
    location: str
    row_count: int
    bytes: int
    table_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """What the catalog knows about a node's output."""

    dataset: str
    kind: NodeKind
    table_id: str
    table_version: int
    """The last version recorded (settled)."""
    configs: tuple[WrittenConfig, ...]
    """The configurations of all rows written since the output was last written whole, oldest first."""
    as_of: str
    row_count: int
    bytes: int
    counts: Mapping[str, int]
    """Sums over all commits (L10)."""
    cursors: Mapping[str, Cursor]
    """By input dataset."""
    files: Mapping[str, FileRead] = field(default_factory=dict)
    """By path, for sources."""
    partitions: Mapping[str, PartitionVersion] = field(default_factory=dict)
    """By partition key."""
    waiting: tuple[str, ...] = ()
    """Partitions of the rows read that are not final yet."""
    updated_at: datetime | None = None
    building: bool = False
    """Some process holds its lease now."""
    last_status: str = ""
    last_error: str = ""
    status_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogView:
    """Everything that the planner may know about the catalog."""

    nodes: Mapping[str, NodeRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    run: str
    as_of: str
    cause: str
    started_at: datetime
    ended_at: datetime | None = None
    status: str = ""
