"""From a person's request to a plan. Starts no Spark.

`plan`, `run`, `backfill` and `quarantine --release` all come this way (L14).
"""

from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from strandline.model.condition_checks import check_filter
from strandline.model.conditions import AllOf
from strandline.model.errors import CallError
from strandline.model.node import Node, Project
from strandline.model.plan import Plan
from strandline.model.project import FailOn
from strandline.plan import Backfill, Observed, PlanRequest, plan, select_nodes
from strandline.sql.filters import parse_filter

from .clock import now
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `plan`, `run`, `backfill` and `quarantine --release` ask for.

    It is the same request for all, so that the plan is what happens (L14).
    """

    select: str | None = None
    nodes: tuple[str, ...] | None = None
    """Exactly these nodes. A name in `select` may mean several."""
    as_of: datetime | None = None
    goes_back: bool = True
    """A clock that has gone past `as_of` goes back to it."""
    accept_guard: tuple[str, ...] | None = None
    """None: no guard may be passed; empty: every guard; else the names whose guard may be passed."""
    quiet: tuple[str, ...] | None = None
    """None: endpoints are told about events; empty: about none; else the triggers that tell nobody."""
    backfill: str | None = None
    """One name, or several separated by blanks."""
    only_stale: bool = False
    partitions: tuple[str, ...] = ()
    where: str = ""
    reason: str = ""
    release: str | None = None
    batches: int | None = None
    """At most this many batches of a task that is published in batches. None for all."""
    fail_on: FailOn | None = None
    """None: use `settings.fail_on`."""


def make_plan(workspace: Workspace, request: RunRequest) -> tuple[Plan, Observed]:
    """Observe the lake and plan."""
    observed = workspace.observe()
    return plan(workspace.project, observed, plan_request(workspace, observed, request)), observed


def plan_request(workspace: Workspace, observed: Observed, request: RunRequest) -> PlanRequest:
    project = workspace.project
    as_of = request.as_of or now()
    selected = None
    if request.select is not None:
        stale: tuple[str, ...] = ()
        if "stale:" in request.select.split():
            stale = tuple(h.node for h in plan(project, observed, PlanRequest(as_of=as_of)).stale)
        selected = select_nodes(project, request.select, stale)
    if request.nodes is not None:
        selected = frozenset(request.nodes)
    backfill = None
    if request.backfill is not None:
        nodes = _check_backfill(project, request.backfill)
        backfill = Backfill(
            nodes=nodes,
            only_stale=request.only_stale,
            reason=request.reason,
            partitions=_check_partitions(project, observed, request, nodes),
            filter=_check_where(project, observed, request, nodes) if request.where else None,
        )
    release = None
    if request.release is not None:
        release = _fact_dataset(workspace, request.release)
    goes_back = request.as_of is not None and request.goes_back
    return PlanRequest(
        as_of=as_of, goes_back=goes_back, selected=selected, backfill=backfill, release=release
    )


def _check_backfill(project: Project, names: str) -> frozenset[str]:
    """The nodes to backfill. Every name must mean at least one."""
    backfilled: set[str] = set()
    for name in names.split() or [names]:
        nodes = {n for n in select_nodes(project, name) if project.get(n).inputs}
        if not nodes:
            decoded = sorted({n.traits.facts.name for n in project.readers_of(name) if n.traits.facts})
            raise CallError(
                f"`{name}` is a source: what was received is never changed.",
                remedy="Backfill the datasets that are decoded from it:"
                f" {', '.join(decoded) or 'there are none'}.",
                slug="backfill-of-a-source",
            )
        backfilled |= nodes
    return frozenset(backfilled)


def _check_partitions(
    project: Project, observed: Observed, request: RunRequest, nodes: frozenset[str]
) -> tuple[str, ...]:
    """The requested partitions. Each must have been built or wait to be."""
    if not request.partitions:
        return ()
    node = _only_job(project, request, nodes, "--partitions")
    record = observed.view.nodes.get(node.name)
    if node.traits.partitioning is None:
        raise CallError(
            f"`{request.backfill}` has no partitions.",
            remedy="Use `--where`, `--stale` or `--all`.",
            slug="no-partitions",
        )
    known = {*record.partitions, *record.waiting} if record else set()
    for name in request.partitions:
        if name not in known:
            near = get_close_matches(name, sorted(known), 1, 0.5)
            remedy = (
                f"Did you mean `{near[0]}`?"
                if near
                else f"It has {len(known)}; `strandline status {node.name}` lists them."
            )
            raise CallError(
                f"`{node.name}` has no partition `{name}`.", remedy=remedy, slug="unknown-partition"
            )
    return tuple(dict.fromkeys(request.partitions))


def _check_where(project: Project, observed: Observed, request: RunRequest, nodes: frozenset[str]) -> AllOf:
    """A filter on columns of one job's output, or on the key and date of one timeline."""
    tables = [observed.tables[n] for n in sorted(nodes) if n in observed.tables]
    jobs = [n for n in nodes if project.get(n).traits.answers_invalidations and project.get(n).key]
    foldings = {project.get(n).traits.folding for n in nodes}
    of_timeline = len(foldings) == 1 and None not in foldings
    if not (len(nodes) == 1 or of_timeline) or not tables or not jobs:
        raise CallError(
            f"`--where` selects scopes of one job's output or one timeline, and `{request.backfill}` was not"
            " built, or is not one with scopes.",
            remedy="Name one job with a key, a cursor or partitions, or one timeline, that has been built, or"
            " use `--all`.",
            slug="no-rows-to-filter",
        )
    columns = dict(tables[0].columns)
    if of_timeline:
        columns = {name: columns[name] for name in project.get(jobs[0]).key}
    return check_filter(parse_filter(request.where), columns)


def _only_job(project: Project, request: RunRequest, nodes: frozenset[str], word: str) -> Node:
    if len(nodes) != 1:
        jobs = ", ".join(n.name for n in project.nodes if n.traits.partitioning is not None)
        what = f"`{word}` needs one job, and `{request.backfill}` means {len(nodes)} nodes."
        raise CallError(what, remedy=f"Name a job with partitions: {jobs or 'there is none'}.", slug="call")
    return project.get(next(iter(nodes)))


def _fact_dataset(workspace: Workspace, name: str) -> str:
    nodes = select_nodes(workspace.project, name)
    dataset = next((n.removesuffix("_quarantine") for n in sorted(nodes) if n.endswith("_quarantine")), None)
    if dataset is None or dataset not in workspace.project.names:
        named = ", ".join(workspace.project.fact_datasets)
        raise CallError(
            f"`{name}` has no quarantine.", remedy=f"Name a fact dataset: {named}.", slug="no-quarantine"
        )
    return dataset
