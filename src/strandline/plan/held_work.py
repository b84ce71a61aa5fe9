"""What a changed configuration holds back: since when, how much waits for it, and the one command that settles all of it."""

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
    """What is stale, frozen or held once a plan is done: all of it, or that which some nodes lie downstream of."""
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
    """By node whose results lack something: the stale or frozen nodes nearest above it that keep it back.

    A stale input keeps back only who reads what has changed of it; a frozen one lacks rows, whatever is read of it.
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
    """Why it is held, without a command of its own: one command settles all that is held."""
    return f"{', '.join(f'`{part}`' for part in held.changed)} changed" if held.changed else held.reason


def _states(made: Plan) -> tuple[tuple[HeldState, tuple[Held, ...]], ...]:
    """A node that is in two of them is told by the last."""
    return (HeldState.STALE, made.stale), (HeldState.HELD, made.held), (HeldState.FROZEN, made.frozen)


def _waiting_for_a_person(made: Plan) -> frozenset[str]:
    """What is held without being stale or frozen goes on by itself once its inputs are settled."""
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
    """Rows of its inputs past its cursors, by the statistics of their commits, and when the first of them came."""
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


def _find_command(project: Project, observed: Observed, made: Plan, wanted: Collection[str]) -> str:
    """The call with the fewest names after which nothing of what is wanted is held: what lies upstream is asked for first, and what
    stays held in the plan of that call is added.
    """
    frozen = {h.node for h in made.frozen}
    asked: set[str] = set()
    left = set(wanted)
    while left:
        asked |= {name for name in left if not (upstream(project, (name,)) - {name}) & left}
        names = _name_all(project, asked)
        nodes = frozenset(n for name in names for n in project.names[name] if project.get(n).inputs)
        backfill = Backfill(nodes=nodes, only_stale=not asked & frozen)
        left = {n for n in wanted if n not in asked} & _find_left(
            plan(project, observed, PlanRequest(as_of=made.as_of, backfill=backfill))
        )
    return f"strandline backfill {' '.join(names)} {'--all' if asked & frozen else '--stale'}"


def _find_left(trial: Plan) -> set[str]:
    """What a plan leaves held for certain or perhaps: a recompute that only follows from an input does nothing if that stays the same."""
    overwritten = {t.node for t in trial.tasks if t.overwrite}
    settled = {t.node for t in trial.tasks if t.cause is Cause.PERSON}
    settled |= {t.node for t in trial.tasks if any(i.dataset in overwritten for i in t.inputs)}
    return ({t.node for t in trial.tasks} - settled) | {h.node for _, held in _states(trial) for h in held}


def _name_all(project: Project, nodes: Collection[str]) -> list[str]:
    """Names that mean these nodes: a fact dataset's where several of its nodes are among them."""
    names: dict[str, None] = {}
    for node in (n.name for n in project.nodes if n.name in nodes):
        together = [
            name
            for name, meant in project.names.items()
            if len(meant) > 1 and node in meant and len(set(meant) & set(nodes)) > 1
        ]
        names[together[0] if together else node] = None
    return list(names)
