"""What a person asks for: backfills of nodes or of some of their scopes, and the release of a quarantine."""

from dataclasses import replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.filters import Filter
from strandline.model.node import Node, Whole
from strandline.model.plan import Cause, Held, Strategy, Task
from strandline.model.scope import Everything, Keys, Partitions, Rows, Scope, add_origins, find_origins
from strandline.model.traits import Writing

from .clock import find_clock_scope
from .draft import Draft, estimated, lacks_input, make_full_task, make_task, planned_inputs
from .estimates import Amount
from .gaps import find_gap, is_rewritten
from .request import Observed, PlanRequest


def is_asked(node: Node, request: PlanRequest, held: Held | None) -> bool:
    """Whether a backfill is of this node. With `--stale`, one that is up to date needs nothing but what its inputs bring."""
    asked = request.backfill
    return asked is not None and node.name in asked.nodes and not (asked.only_stale and held is None)


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
        return None  # what is frozen stays until --all
    why = f": {request.backfill.reason}" if request.backfill.reason else ""
    held = frozen or stale
    reason = f"backfill asked for{why}" + (f" ({', '.join(held.changed)} changed)" if held else "")
    partitions = stale.partitions if stale and request.backfill.only_stale else request.backfill.partitions
    record, table = observed.view.nodes.get(node.name), observed.tables.get(node.name)
    if table and (record is None or not record.cursors):
        # By which configuration it was written is not known before the task has settled it.
        return make_full_task(
            node,
            observed,
            draft,
            Cause.PERSON,
            f"{reason}; and the catalog does not know its table",
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
    """A backfill of some scopes, and with it what has not been read: cursors may not pass over that."""
    assert request.backfill is not None
    if gap := find_gap(node, record, observed.tables.get(node.name), observed):
        return make_full_task(
            node, observed, draft, Cause.PERSON, f"{reason}; and {gap.reason}", new=gap.rewrite
        )
    clock = find_clock_scope(node, record, request)
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
    for given in (i for i in inputs if i.changes):
        if given.after is None or is_rewritten(given, observed, draft):
            return make_full_task(
                node,
                observed,
                draft,
                Cause.PERSON,
                f"{reason}; and `{given.dataset}` was written anew",
                new=False,
            )
        if isinstance(node.get_input(given.name).relation, Whole):
            return make_full_task(
                node,
                observed,
                draft,
                Cause.PERSON,
                f"{reason}; and `{given.name}`, which is read whole, has changed",
                new=False,
            )
    scope = add_origins(_find_asked(node, partitions, request.backfill.filter), find_origins(clock))
    task = make_task(node, Cause.PERSON, Strategy.RECOMPUTE, reason, scope, inputs, draft)
    said = estimated(node, task, observed, draft)
    asked = [record.partitions[p] for p in partitions if p in record.partitions]
    more = Amount(rows=sum(p.row_count for p in asked), bytes=sum(p.bytes for p in asked))
    read = (Amount(rows=said.estimated_rows, bytes=said.estimated_bytes) + more).within(
        Amount(rows=said.full_rows, bytes=said.full_bytes)
    )
    draft.increments[node.name] = draft.increments.get(node.name, Amount()) + more
    return replace(said, estimated_rows=read.rows, estimated_bytes=read.bytes)


def _find_asked(node: Node, partitions: tuple[str, ...], where: Filter | None) -> Scope:
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
