"""The task for what has changed in inputs: what to read of it, and how far it reaches."""

from dataclasses import replace

from strandline.model.commits import Invalidation, TableState
from strandline.model.node import Node, Whole
from strandline.model.plan import Cause, Cursor, PlannedInput, Strategy, Task
from strandline.model.scope import Increment, Rows
from strandline.model.scope_text import describe_origins
from strandline.model.traits import Writing

from .draft import Draft, estimated, following, make_full_task, make_task, pending
from .gaps import is_reshaped, is_rewritten
from .request import Observed


def plan_incremental(node: Node, inputs: tuple[PlannedInput, ...], observed: Observed, draft: Draft) -> Task:
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
