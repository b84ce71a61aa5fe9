"""How much a task would read, from statistics alone, compared with a full recompute."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from strandline.model.definitions import read_whole
from strandline.model.node import Lookup, Node, Whole
from strandline.model.plan import PlannedInput, Strategy, Task

from .request import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(rows=self.rows + other.rows, bytes=self.bytes + other.bytes)

    def within(self, limit: "Amount") -> "Amount":
        return Amount(rows=min(self.rows, limit.rows), bytes=min(self.bytes, limit.bytes))


NOTHING = Amount()


def estimate(
    node: Node, task: Task, observed: Observed, tasks: Mapping[str, Task], increments: Mapping[str, Amount]
) -> tuple[Task, Amount]:
    """The task with its estimates, and how much of its output it may change.

    `tasks` and `increments` are what this run does to the inputs, by dataset. Of a restricted input only the
    changed rows are counted: how many others share their keys is known only when the task runs.
    """
    full = read = changed = NOTHING
    filled = read_whole(node, task.applies)
    for input_ in task.inputs:
        after, increment = _amounts(
            input_, observed, tasks.get(input_.dataset), increments.get(input_.dataset, NOTHING)
        )
        full, changed = full + after, changed + increment
        whole = isinstance(node.get_input(input_.name).relation, Whole | Lookup) or input_.dataset in filled
        read += after if whole else increment
    if task.strategy is Strategy.FULL:
        read = changed = full
    elif task.applies and (record := observed.view.nodes.get(node.name)):
        changed = Amount(rows=record.row_count)  # any row may get another value in a column
    read = read.within(full)
    with_estimates = replace(
        task, estimated_rows=read.rows, estimated_bytes=read.bytes, full_rows=full.rows, full_bytes=full.bytes
    )
    return with_estimates, changed if task.applies else changed.within(full)


def estimate_changed(
    input_: PlannedInput, observed: Observed, tasks: Mapping[str, Task], increments: Mapping[str, Amount]
) -> Amount:
    """How much of an input has changed since the cursor, or changes in the same run."""
    coming = increments.get(input_.dataset, NOTHING)
    return _amounts(input_, observed, tasks.get(input_.dataset), coming)[1]


def _amounts(
    input_: PlannedInput, observed: Observed, task: Task | None, coming: Amount
) -> tuple[Amount, Amount]:
    """An input as it will be when it is read, and the part of it that changed since the cursor."""
    table, record = observed.tables.get(input_.dataset), observed.view.nodes.get(input_.dataset)
    held, late = NOTHING, NOTHING
    if table is not None:
        held = Amount(rows=record.row_count if record and record.row_count else table.rows, bytes=table.bytes)
        if input_.changes and input_.after is not None:
            commits = [c for c in table.commits_after(input_.after.version) if c.changes_rows]
            late = Amount(rows=sum(c.rows_added for c in commits), bytes=sum(c.bytes_added for c in commits))
    if task is None:
        return held, late
    if task.strategy is Strategy.FULL:
        after = held if table is not None else coming
        return after, after  # any row of it may change
    return held + coming, late + coming
