"""`plan`: what would be done, why, how, and how much against a full recompute. Starts no Spark."""

from dataclasses import dataclass
from datetime import datetime

from strandline.model.errors import CallError
from strandline.model.plan import Plan
from strandline.plan import Backfill, Observed, PlanRequest, plan, select_nodes

from .clock import now
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `plan`, `run`, `backfill` and `quarantine --release` ask for: the same request, so the plan is what happens (L14)."""

    select: str | None = None
    as_of: datetime | None = None
    accept_guard: tuple[str, ...] | None = None
    """None: nobody; empty: every guard; else the names whose guard may be passed."""
    backfill: str | None = None
    only_stale: bool = False
    reason: str = ""
    release: str | None = None
    dry: bool = False


def make_plan(workspace: Workspace, request: RunRequest) -> tuple[Plan, Observed]:
    """Observe and plan."""
    observed = workspace.observe()
    return plan(workspace.project, observed, plan_request(workspace, observed, request)), observed


def plan_request(workspace: Workspace, observed: Observed, request: RunRequest) -> PlanRequest:
    project = workspace.project
    as_of = request.as_of or now()
    selected = None
    if request.select:
        stale: tuple[str, ...] = ()
        if "stale:" in request.select.split():
            stale = tuple(h.node for h in plan(project, observed, PlanRequest(as_of=as_of)).stale)
        selected = select_nodes(project, request.select, stale)
    backfill = None
    if request.backfill is not None:
        nodes = frozenset(n for n in select_nodes(project, request.backfill) if project.get(n).inputs)
        if not nodes:
            raise CallError(
                f"`{request.backfill}` is a source: what was received is never changed.",
                remedy="Backfill the datasets that are decoded from it.",
                slug="backfill-of-a-source",
            )
        backfill = Backfill(nodes=nodes, only_stale=request.only_stale, reason=request.reason)
    release = None
    if request.release is not None:
        release = _fact_dataset(workspace, request.release)
    return PlanRequest(as_of=as_of, selected=selected, backfill=backfill, release=release)


def _fact_dataset(workspace: Workspace, name: str) -> str:
    nodes = select_nodes(workspace.project, name)
    found = next((n.removesuffix("_quarantine") for n in sorted(nodes) if n.endswith("_quarantine")), None)
    if found is None or found not in workspace.project.names:
        raise CallError(f"`{name}` has no quarantine.", remedy="Name a fact dataset.", slug="no-quarantine")
    return found
