"""The plan as far as it has been made, and how its tasks are made."""

from dataclasses import dataclass, field, replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import TableState
from strandline.model.node import Input, Lookup, Node
from strandline.model.plan import Cause, Cursor, Held, PlannedInput, Strategy, Task
from strandline.model.scope import Everything, Keys, Origin, Partitions, Scope

from .estimates import Amount, estimate
from .request import Observed
from .unsettled import Unsettled, UnsettledColumns


@dataclass(slots=True)
class Draft:
    """The plan as far as it has been made."""

    tasks: dict[str, Task] = field(default_factory=dict)
    increments: dict[str, Amount] = field(default_factory=dict)
    """How much of its output each task may change."""
    stale: list[Held] = field(default_factory=list)
    frozen: list[Held] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    """By node: what it, or some of its columns, wait for."""
    reshaped: set[str] = field(default_factory=set)
    """Nodes whose tasks may give the output other columns or types."""
    unsettled: dict[str, Unsettled | UnsettledColumns] = field(default_factory=dict)
    """By node: the rows that are not of the current configuration once this plan is done."""


def find_present(node: Node, observed: Observed, draft: Draft) -> frozenset[str]:
    """The inputs of a node that exist, or that this plan adds."""
    return frozenset(
        i.dataset for i in node.inputs if i.dataset in observed.tables or i.dataset in draft.tasks
    )


def lacks_input(node: Node, observed: Observed, draft: Draft) -> bool:
    """Whether there is nothing to compute from: an input was never received and this plan does not add it.

    Where columns have a definition each, those of an input that was never received wait alone.
    """
    present, record = find_present(node, observed, draft), observed.view.nodes.get(node.name)
    missing = {i.dataset for i in node.inputs} - present
    if not node.traits.origins:
        return bool(missing)
    if record and missing & record.cursors.keys():
        return True
    return not any(o.datasets and present.issuperset(o.datasets) for o in node.traits.origins)


def readable_inputs(node: Node, observed: Observed, draft: Draft) -> tuple[Input, ...]:
    """The inputs that a task reads: all of them, unless columns wait for some."""
    if not node.traits.origins:
        return node.inputs
    present = find_present(node, observed, draft)
    return tuple(i for i in node.inputs if i.dataset in present)


def make_full_task(
    node: Node,
    observed: Observed,
    draft: Draft,
    cause: Cause,
    reason: str,
    *,
    new: bool,
    reshapes: bool = False,
    origins: tuple[Origin, ...] = (),
) -> Task:
    """A task over everything. With `origins`, only if one of these turns out to exist when it runs."""
    record = observed.view.nodes.get(node.name)
    cursors = record.cursors if record and not new else {}
    inputs = tuple(
        PlannedInput(name=i.name, dataset=i.dataset, after=cursors.get(i.dataset), changes=True)
        for i in readable_inputs(node, observed, draft)
    )
    task = replace(
        make_task(node, cause, Strategy.FULL, reason, Everything(origins=origins), inputs, draft),
        overwrite=new,
        reshapes=reshapes and not new,
    )
    return estimated(node, task, observed, draft)


def make_task(
    node: Node,
    cause: Cause,
    strategy: Strategy,
    reason: str,
    scope: Scope,
    inputs: tuple[PlannedInput, ...],
    draft: Draft,
) -> Task:
    needs = tuple(dict.fromkeys(i.dataset for i in inputs if i.dataset in draft.tasks))
    if node.traits.beside in draft.tasks:
        needs = (*needs, node.traits.beside)
    return Task(
        node=node.name,
        kind=node.kind,
        cause=cause,
        strategy=strategy,
        reason=reason,
        scope=scope,
        inputs=inputs,
        needs=needs,
    )


def following(node: Node, origins: tuple[Origin, ...]) -> Scope:
    """The scope of the node's output that follows from these: partitions, or keys."""
    if node.traits.partitioning:
        return Partitions(origins=origins)
    return Keys(of=node.traits.scopes_are, origins=origins)


def planned_inputs(
    node: Node, record: NodeRecord, observed: Observed, draft: Draft
) -> tuple[PlannedInput, ...]:
    return tuple(
        PlannedInput(
            name=i.name,
            dataset=i.dataset,
            after=record.cursors.get(i.dataset),
            changes=not isinstance(i.relation, Lookup)
            and (
                i.dataset in draft.tasks
                or i.dataset not in record.cursors
                or bool(pending(node, observed.tables[i.dataset], record.cursors[i.dataset]))
            ),
        )
        for i in readable_inputs(node, observed, draft)
    )


def pending(node: Node, table: TableState, cursor: Cursor) -> tuple[int, ...]:
    """The versions past a cursor that give a node work.

    Compactions, fences and purges never do. Invalidations do so only for jobs.
    """
    wakes = node.traits.answers_invalidations
    return tuple(
        c.version
        for c in table.commits_after(cursor.version)
        if (c.wakes_readers if wakes else c.changes_rows)
    )


def estimated(node: Node, task: Task, observed: Observed, draft: Draft) -> Task:
    task, draft.increments[node.name] = estimate(node, task, observed, draft.tasks, draft.increments)
    return task
