"""What is known about each dataset at one moment: its state, since when, and what it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .key_states import DateKeys, KeysStatus
from .kind import NodeKind

FROZEN = "frozen"
STALE, INVALIDATED, BEHIND, NEVER_BUILT, BUILDING, FRESH = (
    "stale",
    "invalidated",
    "behind",
    "never built",
    "building",
    "fresh",
)
PARTITION_STATES = (STALE, INVALIDATED, BEHIND, NEVER_BUILT, BUILDING, FRESH)
"""Worst first: a person must act, the next run acts, time must pass, a process is at work, nothing is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    partition_key: str
    state: str
    """One of PARTITION_STATES.

    `behind` and `invalidated` may be reported for too many partitions: a run computes exactly what is
    touched.
    """
    rows: int = 0
    bytes: int = 0
    version: datetime | None = None
    """When it was built. None if it was never built."""
    table_version: int | None = None


class HeldState(StrEnum):
    STALE = "stale"
    """New work uses the new configuration. Rows of an older one wait for a backfill."""
    FROZEN = "frozen"
    """Nothing is written until a backfill. The last published state stays."""
    HELD = "held"
    """Not computed, because it would read an input's rows of an older configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNode:
    """One node that waits for a backfill."""

    node: str
    state: HeldState
    reason: str
    changed: tuple[str, ...]
    partitions: tuple[str, ...]
    written_at: datetime | None
    """When it was last written."""
    waiting_rows: int
    """Stale: an upper bound of its rows of an older configuration.

    Frozen and held: input rows past its cursors.
    """
    waiting_since: datetime | None
    """When the first row was written that a frozen or held node has not read."""
    backfill_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWork:
    """Everything that waits for a backfill, inputs before readers."""

    nodes: tuple[HeldNode, ...] = ()
    command: str = ""
    """The call that settles all of it. Empty if nothing is held."""

    @property
    def waits(self) -> bool:
        """Whether facts or rows wait for a held node, so that results lack them."""
        return any(node.waiting_rows for node in self.nodes)


NOTHING_HELD = HeldWork()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatus:
    dataset: str
    kind: NodeKind
    drawn_under: str
    """The heading of its column in the drawing of a status page."""
    drawn_from: int
    """The leftmost column in which it is drawn."""
    state: str
    """fresh, behind, building, stale, frozen or never built.

    If the last attempt did not succeed and there is still work: failed, guarded, blocked or fenced.
    """
    since: datetime | None
    table_version: int | None
    rows: int
    counts: Mapping[str, int]
    reason: str = ""
    """Why it is not fresh."""
    inputs: tuple[str, ...] = ()
    """The datasets it reads."""
    partitioned_by: str = ""
    """The column and size of the partitions of a job in mode `partition`. Empty for all other nodes."""
    partitions: tuple[PartitionStatus, ...] = ()
    """In the order of the column."""
    held_by: tuple[str, ...] = ()
    """The stale or frozen datasets that prevent it from being fresh."""
    keys: KeysStatus | None = None
    """Set for the outputs of timelines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStatus:
    """How far the last output of a timeline has come."""

    timeline: str
    dataset: str
    """Its last output."""
    keys: KeysStatus
    lag_seconds: float = 0.0
    """How long ago the first business date was due that the lowest watermark does not reach."""
    gap_days: int = 0
    """Business dates that are due, and later than the watermark of some key that did not fail."""
    dropped: int = 0
    """Attempts whose commit was refused, because a newer writer was there."""
    dates: tuple[DateKeys, ...] = ()
    """The business dates that are due, ascending. Empty if they were not asked for, or there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidationStatus:
    """An invalidation that some job still has to process."""

    id: str
    dataset: str
    scope: str
    """What it covers, for people."""
    reason: str
    created_at: datetime
    table_version: int
    processed_at_by_job: Mapping[str, datetime | None]
    """None if the job still has to process it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that is reported about a project, or about the nodes that a name means, at one moment."""

    project: str
    statuses: tuple[DatasetStatus, ...]
    held: HeldWork
    """What waits for a backfill, and the call that settles it."""
    invalidations: tuple[InvalidationStatus, ...]
    made_at: datetime
    timelines: tuple[TimelineStatus, ...] = ()
