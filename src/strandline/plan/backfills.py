"""What a person requests: backfills of nodes or of some of their scopes, and the release of a quarantine."""

from dataclasses import replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.conditions import AllOf
from strandline.model.node import Node, Whole
from strandline.model.plan import Cause, Held, Strategy, Task
from strandline.model.scope import Everything, Keys, Partitions, Rows, Scope, add_origins, find_origins
from strandline.model.traits import Writing

from .clock import find_clock_scope
from .draft import Draft, estimated, lacks_input, make_full_task, make_task, planned_inputs
from .estimates import Amount
from .gaps import find_gap, is_rewritten
from .request import Observed, PlanRequest


def is_requested(node: Node, request: PlanRequest, held: Held | None) -> bool:
    """Whether a backfill covers this node. With `--stale`, one that is up to date only follows its inputs."""
    backfill = request.backfill
    return backfill is not None and node.name in backfill.nodes and not (backfill.only_stale and held is None)


def plan_backfill(
    node: Node,
    observed: Observed,
    draft: Draft,
    request: PlanRequest,
    frozen: Held | None,
    stale: Held | None,
) -> Task | None:
    assert request.backfill is not None
    if lacks_input(node, observed, draft):
        return None
    if frozen and (request.backfill.only_stale or request.backfill.partitions or request.backfill.filter):
        return None  # what is frozen stays so until --all
    why = f": {request.backfill.reason}" if request.backfill.reason else ""
    held = frozen or stale
    reason = f"backfill requested{why}" + (f" ({', '.join(held.changed)} changed)" if held else "")
    partitions = stale.partitions if stale and request.backfill.only_stale else request.backfill.partitions
    record, table = observed.view.nodes.get(node.name), observed.tables.get(node.name)
    if table and (record is None or not record.cursors):
        # Which configuration wrote it is unknown until the task has settled it.
        return make_full_task(
            node,
            observed,
            draft,
            Cause.PERSON,
            f"{reason}; and its table is not in the catalog",
            new=True,
        )
    if record and table and (partitions or request.backfill.filter) and not frozen:
        return _plan_part(node, record, observed, draft, request, reason, partitions)
    return make_full_task(
        node,
        observed,
        draft,
        Cause.PERSON,
        reason,
        new=frozen is not None or node.traits.writing is Writing.APPENDS,
        reshapes=True,
    )


def _plan_part(
    node: Node,
    record: NodeRecord,
    observed: Observed,
    draft: Draft,
    request: PlanRequest,
    reason: str,
    partitions: tuple[str, ...],
) -> Task:
    """A backfill of some scopes, and with it what has not been read: cursors may not skip that."""
    assert request.backfill is not None
    if gap := find_gap(node, record, observed.tables.get(node.name), observed):
        return make_full_task(
            node, observed, draft, Cause.PERSON, f"{reason}; and {gap.reason}", new=gap.rewrite
        )
    clock = find_clock_scope(node, record, observed, request)
    if isinstance(clock, Everything):
        return make_full_task(
            node,
            observed,
            draft,
            Cause.PERSON,
            f"{reason}; and it uses :as_of, which was {record.as_of}",
            new=False,
        )
    inputs = planned_inputs(node, record, observed, draft)
    for input_ in (i for i in inputs if i.changes):
        if input_.after is None and node.traits.origins:
            continue  # no column follows it yet
        if input_.after is None or is_rewritten(input_, observed, draft):
            return make_full_task(
                node,
                observed,
                draft,
                Cause.PERSON,
                f"{reason}; and `{input_.dataset}` was rewritten",
                new=False,
            )
        if isinstance(node.get_input(input_.name).relation, Whole):
            return make_full_task(
                node,
                observed,
                draft,
                Cause.PERSON,
                f"{reason}; and `{input_.name}`, which is read whole, has changed",
                new=False,
            )
    scope = add_origins(_find_requested(node, partitions, request.backfill.filter), find_origins(clock))
    task = make_task(node, Cause.PERSON, Strategy.RECOMPUTE, reason, scope, inputs, draft)
    estimated_task = estimated(node, task, observed, draft)
    requested = [record.partitions[p] for p in partitions if p in record.partitions]
    more = Amount(rows=sum(p.row_count for p in requested), bytes=sum(p.bytes for p in requested))
    read = (Amount(rows=estimated_task.estimated_rows, bytes=estimated_task.estimated_bytes) + more).within(
        Amount(rows=estimated_task.full_rows, bytes=estimated_task.full_bytes)
    )
    draft.increments[node.name] = draft.increments.get(node.name, Amount()) + more
    return replace(estimated_task, estimated_rows=read.rows, estimated_bytes=read.bytes)


def _find_requested(node: Node, partitions: tuple[str, ...], where: AllOf | None) -> Scope:
    if node.traits.partitioning:
        return Partitions(names=partitions, where=where)
    return Keys(of=node.traits.scopes_are, where=where)


def plan_release(node: Node, observed: Observed, draft: Draft) -> Task | None:
    assert node.traits.facts is not None
    quarantine = node.traits.facts.quarantine
    if node.name not in observed.tables or quarantine not in observed.tables:
        return None  # nothing was ever refused
    if not node.traits.holds_refused:
        task = make_full_task(
            node, observed, draft, Cause.PERSON, "quarantined positions are decoded again", new=False
        )
        refused = observed.view.nodes.get(quarantine)
        rows = refused.row_count if refused else 0
        draft.increments[node.name] = Amount(rows=rows)
        scope = Rows(refused=True)
        return replace(task, strategy=Strategy.APPEND, scope=scope, estimated_rows=rows, estimated_bytes=0)
    return make_full_task(
        node, observed, draft, Cause.PERSON, "what now passes leaves the quarantine", new=True
    )
