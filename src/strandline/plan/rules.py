"""The rules of the planner, in the order in which they decide: the first one that applies gives the task."""

from dataclasses import replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.plan import Cause, Strategy, Task
from strandline.model.scope import Everything, Left, add_origins, find_origins, is_empty
from strandline.model.traits import Writing

from .backfills import is_requested, plan_backfill, plan_release
from .case import Case, Next, Rule
from .clock import count_crossing, find_clock_scope, settle_as_of
from .draft import estimated, following, lacks_input, make_full_task, make_task, planned_inputs
from .estimates import Amount
from .gaps import find_gap, is_rewritten
from .increments import plan_incremental
from .own_columns import define, find_asked, find_followed, tell_due
from .published import find_changed, plan_published
from .settling import receive_source, settle_alone, settle_unrecorded
from .staleness import current_config, find_frozen


def leave_unselected(case: Case) -> Task | Next | None:
    return Next.RULE if case.selected else None


def receive_files(case: Case) -> Task | Next | None:
    if not case.node.traits.receives:
        return Next.RULE
    return (
        None
        if case.request.backfill or case.request.release
        else receive_source(case.node, case.observed, case.draft)
    )


def settle_held(case: Case) -> Task | Next | None:
    return settle_alone(case.node, case.observed, case.draft) if case.held else Next.RULE


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
    return settle_alone(case.node, case.observed, case.draft) if case.frozen else Next.RULE


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
    task = plan_incremental(node, inputs, observed, draft)
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
        task = plan_incremental(case.node, inputs, case.observed, case.draft)
        return replace(task, scope=add_origins(task.scope, left)) if left else task
    if left:
        reason, scope = "an earlier batch left marked keys", following(case.node, left)
        task = make_task(case.node, Cause.SCHEDULE, Strategy.RECOMPUTE, reason, scope, inputs, case.draft)
        return estimated(case.node, task, case.observed, case.draft)
    return settle_unrecorded(case.node, case.record, case.own, inputs, case.observed, case.draft)


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
