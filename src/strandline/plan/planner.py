"""The planner: one pass over the nodes, inputs before readers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import Invalidation, TableState
from strandline.model.definitions import read_whole
from strandline.model.node import Node, NodeConfig, Project, Whole
from strandline.model.plan import Cause, Cursor, Held, Plan, PlannedInput, Strategy, Task
from strandline.model.scope import (
    NOTHING,
    Everything,
    Increment,
    Left,
    Rows,
    add_origins,
    find_origins,
    is_empty,
)
from strandline.model.scope_text import describe_origins
from strandline.model.traits import Writing

from .backfills import is_requested, plan_backfill, plan_release
from .clock import count_crossing, find_clock_scope, settle_as_of, tell_clock_ahead
from .draft import (
    Draft,
    estimated,
    following,
    lacks_input,
    make_full_task,
    make_task,
    pending,
    planned_inputs,
)
from .estimates import Amount
from .gaps import find_gap, is_reshaped, is_rewritten, may_reshape
from .holds import find_hold, find_unsettled, of_held, settles, waits_only, without_partitions
from .own_columns import (
    define,
    drops_or_refills,
    find_asked,
    find_followed,
    find_unsettled_columns,
    left_stale,
    tell_due,
    tell_waiting,
    with_columns,
)
from .published import find_changed, plan_published
from .request import Observed, PlanRequest
from .selection import downstream
from .sources import plan_source
from .staleness import current_config, find_frozen, find_stale
from .strategies import choose_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One node, and what is known when its turn comes."""

    node: Node
    project: Project
    observed: Observed
    request: PlanRequest
    draft: Draft
    selected: bool
    record: NodeRecord | None
    own: TableState | None
    frozen: Held | None
    stale: Held | None
    held: Held | None
    config: NodeConfig


class Next(Enum):
    """A rule that does not decide a case leaves it to the next one."""

    RULE = "rule"


Rule = Callable[[Case], Task | Next | None]


def leave_unselected(case: Case) -> Task | Next | None:
    return Next.RULE if case.selected else None


def receive_files(case: Case) -> Task | Next | None:
    if not case.node.traits.receives:
        return Next.RULE
    return (
        None
        if case.request.backfill or case.request.release
        else _plan_source(case.node, case.observed, case.draft)
    )


def settle_held(case: Case) -> Task | Next | None:
    return _settle_alone(case.node, case.observed, case.draft) if case.held else Next.RULE


def publish_changes(case: Case) -> Task | Next | None:
    if not case.node.traits.publishes or lacks_input(case.node, case.observed, case.draft):
        return Next.RULE
    task = plan_published(case.node, case.record, case.own, case.observed, case.draft, case.request)
    return task or Next.RULE


def backfill_requested(case: Case) -> Task | Next | None:
    if not is_requested(case.node, case.request, case.frozen or case.stale):
        return Next.RULE
    asked = case.request.backfill
    if case.node.traits.origins and asked is not None and asked.only_stale and not case.frozen:
        return Next.RULE  # what is stale reads an input that was never received
    return plan_backfill(case.node, case.observed, case.draft, case.request, case.frozen, case.stale)


def release_quarantined(case: Case) -> Task | Next | None:
    released = case.request.release
    if (
        released is None
        or case.node.name not in case.project.names[released]
        or case.node.traits.writing is not Writing.APPENDS
    ):
        return Next.RULE
    return plan_release(case.node, case.observed, case.draft)


def settle_frozen(case: Case) -> Task | Next | None:
    return _settle_alone(case.node, case.observed, case.draft) if case.frozen else Next.RULE


def wait_for_inputs(case: Case) -> Task | Next | None:
    return None if lacks_input(case.node, case.observed, case.draft) else Next.RULE


def fill_stale(case: Case) -> Task | Next | None:
    """`backfill --stale` of a node whose columns have a definition each: it fills those that are changed."""
    node, record, backfill = case.node, case.record, case.request.backfill
    if not node.traits.origins or backfill is None or not backfill.only_stale or case.stale is None:
        return Next.RULE
    if node.name not in backfill.nodes or record is None or case.own is None:
        return Next.RULE
    applies = find_asked(node, record, case.config, case.observed, case.draft)
    if not any(part in case.stale.changed for part in applies):
        return Next.RULE  # what it would read was never received
    why = f": {backfill.reason}" if backfill.reason else ""
    reason = f"backfill requested{why} ({', '.join(case.stale.changed)} changed)"
    return _apply(case, record, Cause.PERSON, reason, applies)


def apply_configuration(case: Case) -> Task | Next | None:
    """Columns that were added fill themselves, and those that were removed are dropped."""
    assert case.record is not None
    if not case.node.traits.origins:
        return Next.RULE
    found = define(case.node, case.record, case.config, case.observed, case.draft)
    if not found.due:
        return Next.RULE
    return _apply(case, case.record, Cause.CONFIGURATION, tell_due(found), found.due)


def _apply(case: Case, record: NodeRecord, cause: Cause, reason: str, applies: tuple[str, ...]) -> Task:
    """A task that reads what the filled columns are computed from, and what has changed in other inputs."""
    node, observed, draft = case.node, case.observed, case.draft
    if gap := find_gap(node, record, case.own, observed):
        return make_full_task(node, observed, draft, cause, f"{reason}; and {gap.reason}", new=gap.rewrite)
    if isinstance(find_clock_scope(node, record, observed, case.request), Everything):
        reason = f"{reason}; and it uses :as_of, which was {record.as_of}"
        return make_full_task(node, observed, draft, cause, reason, new=False)
    inputs = planned_inputs(node, record, observed, draft)
    followed = find_followed(node, define(node, record, case.config, observed, draft))
    for input_ in (i for i in inputs if i.changes and i.dataset in followed):
        if input_.after is None or is_rewritten(input_, observed, draft):
            reason = f"{reason}; and `{input_.dataset}` was rewritten"
            return make_full_task(node, observed, draft, cause, reason, new=False)
    task = make_task(node, cause, Strategy.RECOMPUTE, reason, Everything(), inputs, draft)
    return estimated(node, replace(task, applies=applies), observed, draft)


def build_new(case: Case) -> Task | Next | None:
    lacks_table = case.own is None and not case.node.traits.may_lack_table
    if case.record is not None and case.record.cursors and not lacks_table:
        return Next.RULE
    return make_full_task(
        case.node, case.observed, case.draft, Cause.NEW_NODE, "it has not been built yet", new=True
    )


def close_gap(case: Case) -> Task | Next | None:
    assert case.record is not None
    gap = find_gap(case.node, case.record, case.own, case.observed)
    return (
        make_full_task(case.node, case.observed, case.draft, Cause.GAP, gap.reason, new=gap.rewrite)
        if gap
        else Next.RULE
    )


def follow_declaration(case: Case) -> Task | Next | None:
    node, record = case.node, case.record
    config = current_config(node, case.observed)
    if not node.traits.follows_declaration or record is None or not (changed := find_changed(record, config)):
        return Next.RULE
    rewrite = find_frozen(node, record, config) is not None
    reason = f"its declaration changed: {changed}"
    return make_full_task(
        node, case.observed, case.draft, Cause.CONFIGURATION, reason, new=rewrite, reshapes=True
    )


def follow_clock(case: Case) -> Task | Next | None:
    assert case.record is not None
    node, observed, draft = case.node, case.observed, case.draft
    scope = find_clock_scope(node, case.record, observed, case.request)
    if is_empty(scope):
        return Next.RULE
    on_dates = node.traits.business_dates is not None
    why = "business dates have become due since" if on_dates else "it uses :as_of, which was"
    if node.traits.own_clock is not None and not isinstance(scope, Everything):
        why = "rows may have crossed a border since"
    reason = f"{why} {case.record.as_of}"
    if isinstance(scope, Everything):
        return make_full_task(node, observed, draft, Cause.CLOCK, reason, new=False)
    inputs = planned_inputs(node, case.record, observed, draft)
    if not any(i.changes for i in inputs):
        task = make_task(node, Cause.CLOCK, Strategy.RECOMPUTE, reason, scope, inputs, draft)
        return _add_crossing(case, estimated(node, task, observed, draft))
    task = _incremental(node, inputs, observed, draft)
    task = replace(
        task, scope=add_origins(task.scope, find_origins(scope)), reason=f"{task.reason}; and {reason}"
    )
    return _add_crossing(case, task)


def _add_crossing(case: Case, task: Task) -> Task:
    """The task with the rows near borders among what it reads, by the statistics of files."""
    assert case.record is not None
    at = settle_as_of(case.node, case.record, case.request)
    rows = count_crossing(case.node, case.record, case.observed, at) or 0
    if not rows or not task.full_rows:
        return task
    more = Amount(rows=rows, bytes=task.full_bytes * rows // task.full_rows)
    read = (Amount(rows=task.estimated_rows, bytes=task.estimated_bytes) + more).within(
        Amount(rows=task.full_rows, bytes=task.full_bytes)
    )
    case.draft.increments[task.node] = case.draft.increments.get(task.node, Amount()) + more
    return replace(task, estimated_rows=read.rows, estimated_bytes=read.bytes)


def follow_inputs(case: Case) -> Task | Next | None:
    assert case.record is not None
    inputs = planned_inputs(case.node, case.record, case.observed, case.draft)
    left = tuple(Left(left=what) for what in case.record.waiting) if case.node.traits.partitioned else ()
    if any(i.changes for i in inputs):
        task = _incremental(case.node, inputs, case.observed, case.draft)
        return replace(task, scope=add_origins(task.scope, left)) if left else task
    if left:
        reason, scope = "an earlier batch left marked keys", following(case.node, left)
        task = make_task(case.node, Cause.SCHEDULE, Strategy.RECOMPUTE, reason, scope, inputs, case.draft)
        return estimated(case.node, task, case.observed, case.draft)
    return _settle(case.node, case.record, case.own, inputs, case.observed, case.draft)


RULES: tuple[Rule, ...] = (
    leave_unselected,
    receive_files,
    settle_held,
    publish_changes,
    fill_stale,
    backfill_requested,
    release_quarantined,
    settle_frozen,
    wait_for_inputs,
    build_new,
    close_gap,
    follow_declaration,
    apply_configuration,
    follow_clock,
    follow_inputs,
)
"""In this order: the first rule that decides a case returns its task, or no task."""


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
        unsettled = find_unsettled(
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


def _plan_source(node: Node, observed: Observed, draft: Draft) -> Task | None:
    task = plan_source(node, observed)
    if task is None:
        return _settle(
            node, observed.view.nodes.get(node.name), observed.tables.get(node.name), (), observed, draft
        )
    draft.increments[node.name] = Amount(rows=task.estimated_rows, bytes=task.estimated_bytes)
    return task


def _settle(
    node: Node,
    record: NodeRecord | None,
    own: TableState | None,
    inputs: tuple[PlannedInput, ...],
    observed: Observed,
    draft: Draft,
) -> Task | None:
    """Record a commit that the catalog lacks and that makes nobody behind (L6).

    Examples are a backfill's commit, and the first of a source without files. The task finds nothing else to
    do.
    """
    unknown = own.commits_after(record.table_version if record else -1) if own else ()
    missed = [c.version for c in unknown if c.metadata and not c.metadata.operation.is_bare]
    if not missed:
        return None
    strategy = (
        Strategy.APPEND if node.traits.writing in (Writing.RECEIVES, Writing.APPENDS) else Strategy.RECOMPUTE
    )
    reason = f"the catalog does not contain its version {', '.join(map(str, missed))}"
    task = make_task(node, Cause.GAP, strategy, reason, NOTHING, inputs, draft)
    return estimated(node, task, observed, draft)


def _settle_alone(node: Node, observed: Observed, draft: Draft) -> Task | None:
    """For a node that is not computed: record a commit that the catalog lacks.

    It may be the backfill of a frozen node. What its inputs have is considered only after that is known.
    """
    record = observed.view.nodes.get(node.name)
    if record is None or lacks_input(node, observed, draft):
        return None
    known = ((i, record.cursors.get(i.dataset)) for i in node.inputs)
    inputs = tuple(
        PlannedInput(name=i.name, dataset=i.dataset, after=cursor, changes=False) for i, cursor in known
    )
    return _settle(node, record, observed.tables.get(node.name), inputs, observed, draft)


def _why(node: Node, inputs: tuple[PlannedInput, ...], observed: Observed) -> Cause:
    """An invalidation among the unread commits is named. Ordinary commits count as new input."""
    for input_ in inputs if node.traits.answers_invalidations else ():
        table = observed.tables.get(input_.dataset)
        if input_.changes and input_.after and table and _invalidations(table, input_.after):
            return Cause.INVALIDATION
    return Cause.NEW_INPUT


def _invalidations(table: TableState, cursor: Cursor) -> tuple[Invalidation, ...]:
    return tuple(
        i for c in table.commits_after(cursor.version) if c.metadata for i in c.metadata.invalidations
    )


def _incremental(node: Node, inputs: tuple[PlannedInput, ...], observed: Observed, draft: Draft) -> Task:
    changed = [i for i in inputs if i.changes]
    increments = _increments(node, inputs, observed, draft)
    text = describe_origins(increments)
    if node.traits.writing is Writing.APPENDS:
        scope = Rows(origins=increments)
        task = make_task(node, Cause.NEW_INPUT, Strategy.APPEND, f"new rows in {text}", scope, inputs, draft)
        return estimated(node, task, observed, draft)
    if reshaped := [f"`{i.dataset}`" for i in changed if is_reshaped(i, observed, draft)]:
        reason = f"{' and '.join(reshaped)} may have other columns or types than before: {text}"
        return make_full_task(
            node, observed, draft, Cause.NEW_INPUT, reason, new=False, reshapes=True, origins=increments
        )
    for input_ in changed:
        whole = isinstance(node.get_input(input_.name).relation, Whole)
        if input_.after is None and node.traits.origins:
            continue  # no column follows it yet: one that does was filled from it
        if input_.after is None:
            reason = f"`{input_.name}` is a new input of it"
            return _recompute_everything(node, Cause.NEW_INPUT, reason, increments, observed, draft)
        if not whole and is_rewritten(input_, observed, draft):
            reason = f"`{input_.dataset}` was rewritten"
            return _recompute_everything(node, Cause.NEW_INPUT, reason, increments, observed, draft)
    if any(isinstance(node.get_input(i.name).relation, Whole) for i in changed):
        return _widen(node, inputs, increments, observed, draft)
    return _recompute(node, inputs, f"changed rows in {text}", increments, observed, draft)


def _widen(
    node: Node,
    inputs: tuple[PlannedInput, ...],
    increments: tuple[Increment, ...],
    observed: Observed,
    draft: Draft,
) -> Task:
    """A change in an input that is read whole touches everything. A job may refuse that."""
    text, cause = describe_origins(increments), _why(node, inputs, observed)
    whole = tuple(i for i in inputs if i.changes and isinstance(node.get_input(i.name).relation, Whole))
    names = " and ".join(f"`{i.name}`" for i in whole) + (" is" if len(whole) == 1 else " are")
    if node.traits.whole:
        reason = f"mode `full` recomputes everything when an input changes: {text}"
        return _recompute_everything(node, cause, reason, increments, observed, draft)
    if not node.traits.refuses_widening:
        reason = f"{names} read whole, so a change widens the task to everything: {text}"
        return _recompute_everything(node, cause, reason, increments, observed, draft)
    refuses = tuple(i.dataset for i in whole)
    if any(
        i.after and i.dataset in observed.tables and pending(node, observed.tables[i.dataset], i.after)
        for i in whole
    ):
        reason = (
            f"{names} read whole and changed, and `strict_incremental` refuses to recompute everything:"
            f" {text}"
        )
        task = _recompute_everything(node, Cause.NEW_INPUT, reason, increments, observed, draft)
        return replace(task, refuses=refuses)
    # Whether this run changes it is not known yet. Most often it does not, and refusing on suspicion would
    # block the job for ever.
    left = tuple(replace(i, changes=False) if i in whole else i for i in inputs)
    others = _increments(node, left, observed, draft)
    reason = (
        f"{names} read whole: if this run changes that, `strict_incremental` refuses to recompute everything"
    )
    if not others:
        return replace(_recompute(node, left, reason, (), observed, draft), refuses=refuses)
    reason = f"changed rows in {describe_origins(others)}; {reason}"
    return replace(_recompute(node, left, reason, others, observed, draft), refuses=refuses)


def _recompute_everything(
    node: Node,
    cause: Cause,
    reason: str,
    increments: tuple[Increment, ...],
    observed: Observed,
    draft: Draft,
) -> Task:
    """A task that ends as unchanged if none of the increments turns out to exist when it runs."""
    return make_full_task(node, observed, draft, cause, reason, new=False, origins=increments)


def _recompute(
    node: Node,
    inputs: tuple[PlannedInput, ...],
    reason: str,
    increments: tuple[Increment, ...],
    observed: Observed,
    draft: Draft,
) -> Task:
    cause, scope = _why(node, inputs, observed), following(node, increments)
    task = make_task(node, cause, Strategy.RECOMPUTE, reason, scope, inputs, draft)
    return estimated(node, task, observed, draft)


def _increments(
    node: Node, inputs: tuple[PlannedInput, ...], observed: Observed, draft: Draft
) -> tuple[Increment, ...]:
    return tuple(_increment(node, input_, observed, draft) for input_ in inputs if input_.changes)


def _increment(node: Node, input_: PlannedInput, observed: Observed, draft: Draft) -> Increment:
    """What has changed in an input, from its log alone."""
    increment = Increment(dataset=input_.dataset, coming=input_.dataset in draft.tasks)
    table = observed.tables.get(input_.dataset)
    if table is None or input_.after is None or not (versions := pending(node, table, input_.after)):
        return increment
    invalidations = _invalidations(table, input_.after) if node.traits.answers_invalidations else ()
    return replace(
        increment,
        first=versions[0],
        last=versions[-1],
        rows=sum(c.rows_added for c in table.commits_after(input_.after.version) if c.changes_rows),
        invalidations=len(invalidations),
        reasons=tuple(sorted({i.reason for i in invalidations})),
    )
