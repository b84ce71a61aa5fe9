"""What a server can be asked to do: one table, used by its routes, its dispatcher and the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from strandline.model.plan import Plan, Task, TaskResult
from strandline.model.statuses import HeldWork
from strandline.model.verified import VerifiedDataset, VerifyOutcome
from strandline.model.wire import Wire

from .fresh import QueryRequest, query_with_spark
from .invalidate import Invalidated, InvalidateRequest, invalidate
from .maintain import MaintainOutcome, MaintainRequest, maintain_tables
from .plan import show_plan
from .planning import RunRequest
from .query import QueryResult
from .run import RunOutcome, run
from .verify import VerifyRequest, verify
from .watching import Waited, Watcher
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What the work needs besides its request."""

    workspace: Workspace
    watcher: Watcher
    request: str = ""
    """The id of the server's request. Empty where there is no server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One thing that can be asked for."""

    request: type
    """The class of the request value."""
    outcome: tuple[type, ...]
    """The classes of the outcome's values."""
    do: Callable[[Doing, Any], object]
    recorded: bool = True
    """It is a row of the catalog and survives a restart. What only reads is answered or lost."""
    aside: bool = False
    """It needs no Spark, so it is done beside a run."""


def _run(doing: Doing, request: RunRequest) -> RunOutcome:
    return run(doing.workspace, request, doing.watcher)


def _plan(doing: Doing, request: RunRequest) -> tuple[Plan, HeldWork]:
    return show_plan(doing.workspace, request)


def _verify(doing: Doing, request: VerifyRequest) -> VerifyOutcome:
    return verify(doing.workspace, request.names, request.sample_percent, doing.watcher.verified)


def _invalidate(doing: Doing, request: InvalidateRequest) -> Invalidated:
    return invalidate(
        doing.workspace,
        request.dataset,
        reason=request.reason,
        where=request.where,
        row_filter=request.row_filter,
        partition=request.partition,
        source_event=request.source_event,
        request=doing.request,
    )


def _query(doing: Doing, request: QueryRequest) -> QueryResult:
    return query_with_spark(doing.workspace, request)


def _maintain(doing: Doing, request: MaintainRequest) -> MaintainOutcome:
    return maintain_tables(doing.workspace, request.name, lambda _: None)


WORK: Mapping[str, Work] = {
    "run": Work(request=RunRequest, outcome=(RunOutcome,), do=_run),
    "backfill": Work(request=RunRequest, outcome=(RunOutcome,), do=_run),
    "quarantine": Work(request=RunRequest, outcome=(RunOutcome,), do=_run),
    "plan": Work(request=RunRequest, outcome=(Plan, HeldWork), do=_plan, recorded=False, aside=True),
    "verify": Work(request=VerifyRequest, outcome=(VerifyOutcome,), do=_verify),
    "invalidate": Work(request=InvalidateRequest, outcome=(Invalidated,), do=_invalidate),
    "query": Work(request=QueryRequest, outcome=(QueryResult,), do=_query, recorded=False),
    "maintain": Work(request=MaintainRequest, outcome=(MaintainOutcome,), do=_maintain),
}
"""By verb. `quarantine` is its release, `query` the two kinds of query that need Spark."""


@cache
def wire() -> Wire:
    """What writes and reads the requests, the outcomes, and what happens in between."""
    classes = [kind for work in WORK.values() for kind in (work.request, *work.outcome)]
    return Wire.of(*classes, Task, TaskResult, VerifiedDataset, Waited)


def to_wire(value: object) -> Any:
    """JSON for a request value, an outcome, or an error."""
    return wire().to_wire(value)


def from_wire(document: object) -> Any:
    """What `to_wire` wrote. Raises WireError for anything else."""
    return wire().from_wire(document)
