"""What a changed configuration holds back: since when, how much waits, and the command that settles it."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import CommitSummary
from strandline.model.node import Node, Project
from strandline.model.plan import Cause, Held, Plan
from strandline.model.statuses import NOTHING_HELD, HeldNode, HeldState, HeldWork

from .planner import plan
from .request import Backfill, Observed, PlanRequest
from .selection import upstream


def find_held(
    project: Project, observed: Observed, made: Plan, names: Iterable[str] | None = None
) -> HeldWork:
    """What is stale, frozen or held once a plan is done: all of it, or what is upstream of some nodes."""
    concerned = None if names is None else upstream(project, names)
    held_by_node = {
        h.node: (state, h)
        for state, held in _states(made)
        for h in held
        if concerned is None or h.node in concerned
    }
    if not held_by_node:
        return NOTHING_HELD
    nodes = tuple(
        _describe(node, *held_by_node[node.name], observed)
        for node in project.nodes
        if node.name in held_by_node
    )
    return HeldWork(
        nodes=nodes,
        command=_find_command(
            project, observed, made, [n for n in held_by_node if n in _waiting_for_a_person(made)]
        ),
    )


def find_holders(project: Project, made: Plan) -> Mapping[str, tuple[str, ...]]:
    """For each node whose results lack something: the nearest stale or frozen nodes above that hold it back.

    A stale input only holds back readers of what changed in it. A frozen one lacks rows, whatever is read of
    it.
    """
    stale, frozen, held = ({h.node for h in all_held} for all_held in (made.stale, made.frozen, made.held))
    holders: dict[str, tuple[str, ...]] = {}
    for node in project.nodes:
        above: list[str] = []
        for name in (i.dataset for i in node.inputs):
            keeps_back = name in frozen or (name in stale and node.name in held)
            above += (name,) if keeps_back else holders.get(name, ())
        if above:
            holders[node.name] = tuple(dict.fromkeys(above))
    return holders


def describe_change(held: Held) -> str:
    """Why it is held, without its own command: one command settles everything that is held."""
    return f"{', '.join(f'`{part}`' for part in held.changed)} changed" if held.changed else held.reason


def _states(made: Plan) -> tuple[tuple[HeldState, tuple[Held, ...]], ...]:
    """The states, in order. The last one counts for a node in two of them."""
    return (HeldState.STALE, made.stale), (HeldState.HELD, made.held), (HeldState.FROZEN, made.frozen)


def _waiting_for_a_person(made: Plan) -> frozenset[str]:
    """The stale and frozen nodes. Other held nodes go on by themselves once their inputs are settled."""
    return frozenset(h.node for h in (*made.stale, *made.frozen))


def _describe(node: Node, state: HeldState, held: Held, observed: Observed) -> HeldNode:
    record = observed.view.nodes.get(node.name)
    rows, since = (
        (_count_older(held, record), None)
        if state is HeldState.STALE
        else _count_unread(node, record, observed)
    )
    return HeldNode(
        node=node.name,
        state=state,
        reason=describe_change(held),
        changed=held.changed,
        partitions=held.partitions,
        written_at=record.updated_at if record else None,
        waiting_rows=rows,
        waiting_since=since,
        backfill_rows=held.backfill_rows,
    )


def _count_unread(node: Node, record: NodeRecord | None, observed: Observed) -> tuple[int, datetime | None]:
    """Unread rows of its inputs, by the statistics of their commits, and when the first of them came."""
    unread: list[CommitSummary] = []
    for dataset in dict.fromkeys(i.dataset for i in node.inputs):
        table, cursor = observed.tables.get(dataset), record.cursors.get(dataset) if record else None
        if table is not None and cursor is not None:
            known = cursor.version if cursor.table_id == table.table_id else -1
            unread += [c for c in table.commits_after(known) if c.changes_rows]
    return sum(c.rows_added for c in unread), min(
        (c.committed_at for c in unread if c.committed_at), default=None
    )


def _count_older(held: Held, record: NodeRecord | None) -> int:
    if record is None:
        return 0
    if held.partitions:
        return sum(record.partitions[p].row_count for p in held.partitions if p in record.partitions)
    return record.row_count


def _find_command(project: Project, observed: Observed, made: Plan, nodes_held: Collection[str]) -> str:
    """The call with the fewest names after which none of these nodes is held.

    What is furthest upstream is requested first, and what stays held in the plan of that call is added.
    """
    frozen = {h.node for h in made.frozen}
    requested: set[str] = set()
    left = set(nodes_held)
    while left:
        requested |= {name for name in left if not (upstream(project, (name,)) - {name}) & left}
        names = _name_all(project, requested)
        nodes = frozenset(n for name in names for n in project.names[name] if project.get(n).inputs)
        backfill = Backfill(nodes=nodes, only_stale=not requested & frozen)
        left = {n for n in nodes_held if n not in requested} & _find_left(
            plan(project, observed, PlanRequest(as_of=made.as_of, backfill=backfill))
        )
    return f"strandline backfill {' '.join(names)} {'--all' if requested & frozen else '--stale'}"


def _find_left(trial: Plan) -> set[str]:
    """What a plan leaves held, for certain or perhaps.

    A recompute that only follows from an input does nothing if the input stays the same.
    """
    overwritten = {t.node for t in trial.tasks if t.overwrite}
    settled = {t.node for t in trial.tasks if t.cause is Cause.PERSON}
    settled |= {t.node for t in trial.tasks if any(i.dataset in overwritten for i in t.inputs)}
    return ({t.node for t in trial.tasks} - settled) | {h.node for _, held in _states(trial) for h in held}


def _name_all(project: Project, nodes: Collection[str]) -> list[str]:
    """Names that mean these nodes: a fact dataset's name if several of its nodes are among them."""
    names: dict[str, None] = {}
    for node in (n.name for n in project.nodes if n.name in nodes):
        together = [
            name
            for name, meant in project.names.items()
            if len(meant) > 1 and node in meant and len(set(meant) & set(nodes)) > 1
        ]
        names[together[0] if together else node] = None
    return list(names)
