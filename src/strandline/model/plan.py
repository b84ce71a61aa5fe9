"""A plan is a value: the tasks that would bring outputs up to date, each with its cause, scope and strategy."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .kind import NodeKind
from .scope import Scope
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
    """What a task reads of one input: the increment after `after` where the input changed, all of it otherwise."""

    name: str
    dataset: str
    after: Cursor | None
    """Where the node's cursor stands; None when it has read nothing or must read all again."""
    changes: bool
    """Whether the input has, or in this run may get, row changes past the cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One node over one scope."""

    node: str
    kind: NodeKind
    cause: Cause
    strategy: Strategy
    reason: str
    scope: Scope
    """The part of the output it covers, as far as a plan knows it."""
    inputs: tuple[PlannedInput, ...] = ()
    files: tuple[str, ...] = ()
    """For a source: the files to look into."""
    needs: tuple[str, ...] = ()
    """Nodes whose tasks in this plan come first."""
    estimated_rows: int = 0
    estimated_bytes: int = 0
    full_rows: int = 0
    full_bytes: int = 0
    overwrite: bool = False
    """Replace the table, schema and all, in one commit: a backfill after a change that froze the node, or a gap."""
    reshapes: bool = False
    """Replace the table, schema and all, if the columns or types that the task computes have become others."""
    refuses: tuple[str, ...] = ()
    """`whole` inputs of a job with `strict_incremental`: if one of them has changed, the task fails instead of widening to everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A node that is stale (older rows wait for a backfill), frozen (not written at all until one), or held because it reads such rows."""

    node: str
    reason: str
    changed: tuple[str, ...]
    """The parts of the declaration that differ."""
    partitions: tuple[str, ...] = ()
    """The partitions concerned, of a node that has them."""
    backfill_rows: int = 0
    """About how many rows the backfill would read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Tasks in an order in which inputs come before readers."""

    as_of: datetime
    tasks: tuple[Task, ...]
    stale: tuple[Held, ...] = ()
    frozen: tuple[Held, ...] = ()
    held: tuple[Held, ...] = ()
    """Not computed, because they would read rows of an older configuration of an input, or of no single one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What became of a task."""

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
    counts: Mapping[str, int]
    error: str = ""
    slug: str = ""
    partly: bool = False
    """Failed for a part of its source alone: what else there was is published, and readers go on."""
    tombstones: int = 0
    """`_deleted` rows written, to be purged at the end of the run."""
    notes: tuple[str, ...] = ()
    """What must not be silent (L13): a skipped file, a fence, a settled commit."""
    covered: Scope | None = None
    """What the scope proved to be. None for a task that computed nothing."""


def conclude(task: Task, status: Status) -> TaskResult:
    """A task's result before anything is known but how it ended."""
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


def describe_covered(result: TaskResult) -> str:
    """The scope of a result: what the plan said of it, then what it proved to be."""
    planned = describe(result.scope)
    covered = describe(result.covered) if result.covered else planned
    return planned if covered == planned else f"{planned}: {covered}"
