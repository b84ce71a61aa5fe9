"""A plan is a value: the tasks that bring outputs up to date, each with its cause, scope and strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from .key_states import REPROCESSING
from .kind import NodeKind
from .scope import Keys, Scope, is_empty
from .scope_text import describe


class Cause(StrEnum):
    NEW_INPUT = "new_input"
    NEW_NODE = "new_node"
    INVALIDATION = "invalidation"
    GAP = "gap"
    CONFIGURATION = "configuration"
    SCHEDULE = "schedule"
    CLOCK = "clock"
    PERSON = "person"


class Strategy(StrEnum):
    APPEND = "append"
    RECOMPUTE = "recompute"
    ACCUMULATE = "accumulate"
    FULL = "full"


class Status(StrEnum):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    BLOCKED = "blocked"
    GUARDED = "guarded"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a node has read an input (L9)."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInput:
    """What a task reads from one input: if the input changed, the increment after `after`, else all of it."""

    name: str
    dataset: str
    after: Cursor | None
    """The node's cursor. None if it has read nothing or must read everything again."""
    changes: bool
    """Whether the input has row changes past the cursor, or may get them in this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One node over one scope."""

    node: str
    kind: NodeKind
    cause: Cause
    strategy: Strategy
    reason: str
    scope: Scope
    """The part of the output that it covers, as far as a plan knows it."""
    inputs: tuple[PlannedInput, ...] = ()
    files: tuple[str, ...] = ()
    """For a source: the files to examine."""
    needs: tuple[str, ...] = ()
    """Nodes whose tasks in this plan come first."""
    estimated_rows: int = 0
    estimated_bytes: int = 0
    full_rows: int = 0
    full_bytes: int = 0
    overwrite: bool = False
    """Replace the table and its schema in one commit: after a gap, or in the backfill of a frozen node."""
    reshapes: bool = False
    """Replace the table and its schema if the task computes other columns or types than before."""
    applies: tuple[str, ...] = ()
    """The changed parts of the configuration that it applies: columns that it fills for every row, or drops.

    Only for a node whose columns have a definition each. A task that replaces the table applies everything.
    """
    as_of: datetime | None = None
    """The time at which it is computed, if the node has a clock of its own. None for that of the run."""
    refuses: tuple[str, ...] = ()
    """The `whole` inputs of a job with `strict_incremental`.

    If one of them has changed, the task fails instead of widening to everything.
    """

    @property
    def rebuilds(self) -> bool:
        """Whether somebody asked for everything to be computed again."""
        return self.cause is Cause.PERSON and self.strategy is Strategy.FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A node that waits for a backfill.

    It is stale (older rows wait), frozen (not written at all until then), or held because it reads such rows.
    """

    node: str
    reason: str
    changed: tuple[str, ...]
    """The parts of the declaration that differ."""
    partitions: tuple[str, ...] = ()
    """The partitions concerned, if the node has partitions."""
    backfill_rows: int = 0
    """About how many rows the backfill would read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Tasks, inputs before readers."""

    as_of: datetime
    tasks: tuple[Task, ...]
    stale: tuple[Held, ...] = ()
    frozen: tuple[Held, ...] = ()
    held: tuple[Held, ...] = ()
    """Not computed: they would read rows of an input that have an older configuration, or several."""
    notes: tuple[str, ...] = ()
    """What must not be silent (L13): an output that stays at a later `as_of` than the requested one."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """By node: which input it, or some of its columns, wait for. Also among the notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task."""

    node: str
    kind: NodeKind
    cause: Cause
    strategy: Strategy
    reason: str
    scope: Scope
    """As planned."""
    status: Status
    input_versions: Mapping[str, int]
    rows_read: int = 0
    rows_written: int = 0
    rows_full: int = 0
    seconds: float = 0.0
    table_version: int | None = None
    token: int | None = None
    """The fence of its commit. None if nothing was written."""
    counts: Mapping[str, int]
    error: str = ""
    slug: str = ""
    partly: bool = False
    """It failed only for a part of its source. The rest is published, and readers continue."""
    tombstones: int = 0
    """The number of `_deleted` rows written, which are purged at the end of the run."""
    notes: tuple[str, ...] = ()
    """What must not be silent (L13): a skipped file, a fence, a settled commit."""
    left: tuple[str, ...] = ()
    """What this task leaves to a later batch, in words."""
    batches: int = 0
    """The number of batches that were published. A commit that only marks what is left is none."""
    covered: Scope | None = None
    """The scope that was computed. None for a task that computed nothing."""


def conclude(task: Task, status: Status) -> TaskResult:
    """A task's result when only its status is known."""
    return TaskResult(
        node=task.node,
        kind=task.kind,
        cause=task.cause,
        strategy=task.strategy,
        reason=task.reason,
        scope=task.scope,
        status=status,
        input_versions={},
        counts={},
    )


def add_batch(earlier: TaskResult, later: TaskResult) -> TaskResult:
    """The result of a task that was done in batches, of which this is one more.

    The keys that wait are those that the last batch left.
    """
    counts = {
        name: (0 if name == REPROCESSING else earlier.counts.get(name, 0)) + later.counts.get(name, 0)
        for name in {**earlier.counts, **later.counts}
    }
    bad = later if later.error else earlier
    return replace(
        later,
        cause=earlier.cause,
        strategy=earlier.strategy,
        reason=earlier.reason,
        scope=earlier.scope,
        covered=_add_covered(earlier.covered, later.covered),
        status=bad.status if bad.error else earlier.status,
        error=bad.error,
        slug=bad.slug,
        partly=bad.partly,
        rows_read=earlier.rows_read + later.rows_read,
        rows_written=earlier.rows_written + later.rows_written,
        counts=counts,
        seconds=round(earlier.seconds + later.seconds, 3),
        notes=(*earlier.notes, *later.notes),
        batches=earlier.batches + 1,
    )


def _add_covered(earlier: Scope | None, later: Scope | None) -> Scope | None:
    """What two batches covered. A batch of another kind than the first is not added."""
    if earlier is None or is_empty(earlier):
        return later
    if isinstance(earlier, Keys) and isinstance(later, Keys) and earlier.count and later.count:
        return replace(earlier, count=earlier.count + later.count)
    return earlier


def describe_covered(result: TaskResult) -> str:
    """The scope of a result: as planned, then as computed."""
    planned = describe(result.scope)
    covered = describe(result.covered) if result.covered else planned
    return planned if covered == planned else f"{planned}: {covered}"
