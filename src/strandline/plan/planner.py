"""The planner: one pass over the nodes, inputs before readers."""

from dataclasses import replace

from strandline.model.definitions import read_whole
from strandline.model.node import Node, Project
from strandline.model.plan import Held, Plan, Task

from .case import Case, Next
from .clock import settle_as_of, tell_clock_ahead
from .draft import Draft
from .gaps import may_reshape
from .holds import find_hold, find_unsettled, of_held, settles, waits_only, without_partitions
from .own_columns import (
    define,
    drops_or_refills,
    find_unsettled_columns,
    left_stale,
    tell_waiting,
    with_columns,
)
from .request import Observed, PlanRequest
from .rules import RULES
from .selection import downstream
from .staleness import current_config, find_frozen, find_stale
from .strategies import choose_strategy
from .unsettled import Unsettled, UnsettledColumns


def decide(case: Case) -> Task | None:
    for rule in RULES:
        decision = rule(case)
        if decision is not Next.RULE:
            return decision
    raise AssertionError("the last rule decides every case")


def plan(project: Project, observed: Observed, request: PlanRequest) -> Plan:
    """The tasks that would bring outputs up to date, in the order in which they would run."""
    draft = Draft()
    selected = _selected(project, request)
    for node in project.nodes:
        config = current_config(node, observed)
        record, own = observed.view.nodes.get(node.name), observed.tables.get(node.name)
        # What was received is never changed (L1): a source has nothing to rewrite.
        derived = record if node.inputs else None
        kept = None if node.traits.follows_declaration else derived
        frozen = find_frozen(node, kept, config) if kept else None
        found = define(node, derived, config, observed, draft) if node.traits.origins else None
        stale = find_stale(node, kept, config) if kept and not frozen else None
        held = find_hold(node, draft)
        task = decide(
            Case(
                node=node,
                project=project,
                observed=observed,
                request=request,
                draft=draft,
                selected=node.name in selected,
                record=record,
                own=own,
                frozen=frozen,
                stale=stale,
                held=held,
                config=config,
            )
        )
        if task is not None and node.traits.own_clock is not None:
            task = replace(task, as_of=settle_as_of(node, record, request))
        if task is not None:
            task = choose_strategy(node, task, record, observed, project.settings, draft)
            task = with_columns(node, task, record, config, observed, draft)
        if task is not None and (
            may_reshape(node, task, record, config, draft) or drops_or_refills(node, task, record)
        ):
            draft.reshaped.add(node.name)
        if frozen and task and task.overwrite:
            frozen = None
        if stale and found is not None:
            stale = left_stale(node, found, task)
        elif stale:
            stale = None if settles(node, task, observed, draft) else without_partitions(stale, task)
        unsettled: Unsettled | UnsettledColumns | None = find_unsettled(
            node, derived, own, config, frozen if found else frozen or stale, frozen=frozen is not None
        )
        if found is not None and (derived or task):
            unsettled = unsettled or find_unsettled_columns(node, found, task)
        if held and waits_only(node, draft):
            draft.waiting[node.name] = f"{node.name} waits: {held.reason}."
        elif held:
            draft.held.append(_with_cost(node, held, observed))
        if held:
            unsettled = of_held(held, draft, node)
        if node.traits.follows_declaration:
            unsettled = next((u for i in node.inputs if (u := draft.unsettled.get(i.dataset))), None)
        if unsettled and (unsettled.waits or not (task and task.overwrite)):
            draft.unsettled[node.name] = unsettled
        if task is not None:
            draft.tasks[node.name] = task
        if node.name in selected and node.traits.origins and (record or task):
            told = tell_waiting(node, define(node, record, config, observed, draft))
            if text := " ".join(told):
                draft.waiting[node.name] = text
        if node.name in selected and (note := tell_clock_ahead(node, record, request, task)):
            draft.notes.append(note)
        if frozen:
            draft.frozen.append(_with_cost(node, frozen, observed))
        if stale:
            draft.stale.append(_with_cost(node, stale, observed))
    return Plan(
        as_of=request.as_of,
        tasks=tuple(draft.tasks.values()),
        stale=tuple(draft.stale),
        frozen=tuple(draft.frozen),
        held=tuple(draft.held),
        notes=(*draft.waiting.values(), *draft.notes),
        waiting=draft.waiting,
    )


def _with_cost(node: Node, held: Held, observed: Observed) -> Held:
    """What the backfill that it waits for would read: its partitions' rows, or all inputs."""
    record = observed.view.nodes.get(node.name)
    if held.partitions and record:
        return replace(held, backfill_rows=sum(record.partitions[p].row_count for p in held.partitions))
    read = {i.dataset for i in node.inputs}
    if node.traits.origins and held.changed:
        read &= read_whole(node, held.changed)
    inputs = [observed.view.nodes.get(dataset) for dataset in read]
    return replace(held, backfill_rows=sum(r.row_count for r in inputs if r))


def _selected(project: Project, request: PlanRequest) -> frozenset[str]:
    everything = frozenset(n.name for n in project.nodes) if request.selected is None else request.selected
    if request.backfill is not None:
        return everything & frozenset(downstream(project, request.backfill.nodes))
    if request.release is not None:
        return everything & frozenset(downstream(project, project.names[request.release]))
    return everything
