"""Columns that have a definition each: which of them a task fills or drops, and which are held.

A column that is added fills itself, and one that is removed is dropped, in the next task. One that is changed
is held: it keeps its values until a backfill fills it. It holds no other column up.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.definitions import Definitions, find_definitions
from strandline.model.node import Node, NodeConfig
from strandline.model.plan import Cause, Held, Strategy, Task
from strandline.model.report import listed

from .draft import Draft, find_present
from .request import Observed
from .staleness import tell_stale
from .unsettled import UnsettledColumns


def define(
    node: Node,
    record: NodeRecord | None,
    config: NodeConfig,
    observed: Observed,
    draft: Draft,
    applies: Collection[str] = (),
) -> Definitions:
    """The columns of a node as this plan finds them."""
    written = record.configs[-1].parts if record and record.configs else None
    return find_definitions(node, written, config, find_present(node, observed, draft), applies)


def find_followed(node: Node, found: Definitions) -> frozenset[str]:
    """The datasets of which a task reads what has changed, whatever it fills."""
    columns = {d for origin in node.traits.origins if origin.part in found.current for d in origin.datasets}
    return frozenset(columns | {d for part, d in node.traits.row_parts.items() if part not in found.rows})


def with_columns(
    node: Node,
    task: Task,
    record: NodeRecord | None,
    config: NodeConfig,
    observed: Observed,
    draft: Draft,
) -> Task:
    """A task over everything with the changed parts of the configuration that it applies.

    It computes every column but those that only a person has filled.
    """
    if not node.traits.origins or task.strategy is not Strategy.FULL:
        return task
    found = define(node, record, config, observed, draft)
    if task.overwrite or task.cause is Cause.PERSON:
        return replace(task, applies=find_asked(node, record, config, observed, draft))
    return replace(task, applies=found.due)


def find_asked(
    node: Node, record: NodeRecord | None, config: NodeConfig, observed: Observed, draft: Draft
) -> tuple[str, ...]:
    """What a backfill applies: what is changed, and what a run would."""
    fillable = define(node, record, config, observed, draft).fillable
    return (*define(node, record, config, observed, draft, fillable).due, *fillable)


def drops_or_refills(node: Node, task: Task, record: NodeRecord | None) -> bool:
    """Whether a task may have to replace its table: it loses a column, or a column may get another type."""
    if not node.traits.origins or record is None or not record.configs:
        return False
    had = record.configs[-1].parts
    return any(part in had for part in task.applies if part not in node.traits.row_parts)


def left_stale(node: Node, found: Definitions, task: Task | None) -> Held | None:
    """What stays stale once a task is done."""
    applied = set(task.applies) if task else set()
    left = tuple(part for part in found.changed if part not in applied)
    return tell_stale(node, left, tuple(part for part in left if part not in found.fillable))


def find_unsettled_columns(node: Node, found: Definitions, task: Task | None) -> UnsettledColumns | None:
    """The columns that readers must not read yet: of another definition, or not there."""
    applied = set(task.applies) if task else set()
    stale = [part for part in found.changed if part not in applied]
    absent = [part for part in (*found.added, *found.returned, *found.waiting) if part not in applied]
    if task is not None and task.overwrite:
        stale, absent = [], [*absent, *stale]  # a table that is replaced has no columns but those it fills
    waiting = [part for part in absent if found.waiting.get(part) or part in found.changed]
    unsettled = UnsettledColumns(
        node=node.name,
        stale=tuple(stale),
        waiting=tuple(waiting),
        absent=tuple(part for part in absent if part not in waiting),
        rows_differ=any(part not in applied for part in found.rows) and task is None,
    )
    return unsettled if unsettled.columns else None


def tell_waiting(node: Node, found: Definitions) -> Iterator[str]:
    """A sentence for the columns that wait for an input, if the others go on without it (L13)."""
    names = {i.dataset: i.name for i in node.inputs}
    columns_by_inputs: dict[tuple[str, ...], list[str]] = {}
    for part, datasets in found.waiting.items():
        inputs = tuple(dict.fromkeys(names[dataset] for dataset in datasets))
        columns_by_inputs.setdefault(inputs, []).append(part)
    for inputs, parts in columns_by_inputs.items():
        if inputs:
            yield (
                f"{listed(parts)} of {node.name} {'waits' if len(parts) == 1 else 'wait'} for"
                f" {listed(inputs)}, which {'was' if len(inputs) == 1 else 'were'} never received."
            )


def tell_due(found: Definitions) -> str:
    """What the next task applies, in words."""
    words = []
    for parts, what in (
        (found.added, "added"),
        (found.returned, "changed back"),
        (found.removed, "removed"),
    ):
        if parts:
            names = ", ".join(f"`{part}`" for part in parts)
            words.append(f"{names} {'was' if len(parts) == 1 else 'were'} {what}")
    if not words:
        words.append("the datasets that name rows changed")
    return " and ".join(words)
