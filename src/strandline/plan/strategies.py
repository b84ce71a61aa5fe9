"""How a change reaches the columns of a node that have a definition each: added to, computed again, in full.

A node whose columns are declared one by one says of each of them how it can be kept up to date
(`Traits.origins`). A task accumulates if one of the columns that it may change can be added to.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from strandline.model.accumulation import find_delay, find_obstacle
from strandline.model.catalog_records import NodeRecord
from strandline.model.node import Node
from strandline.model.own_clock import OwnClock, WatchedBorder
from strandline.model.plan import Cause, Strategy, Task
from strandline.model.project import Settings
from strandline.model.scope import find_origins
from strandline.model.traits import ColumnOrigin

from .draft import Draft, make_full_task
from .estimates import estimate_changed
from .request import Observed

FOLLOWING = (Cause.NEW_INPUT, Cause.CLOCK)
"""The causes whose tasks may take any strategy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a change reaches one column."""

    strategy: Strategy
    why: str


def find_way(origin: ColumnOrigin, observed: Observed) -> Way:
    """How a change reaches a column in general, whatever changes beside it."""
    if origin.accumulation is None:
        return Way(strategy=Strategy.RECOMPUTE, why=origin.why)
    table = observed.tables.get(origin.dataset)
    obstacle = find_obstacle(origin.accumulation, dict(table.columns) if table else {})
    if obstacle:
        return Way(strategy=Strategy.RECOMPUTE, why=f"{obstacle}: {origin.why}")
    added = origin.added
    if found_in := origin.accumulation.found_in:
        names = " or ".join(f"`{name}`" for name in found_in)
        added += f"; where {names} changes too, the affected entities are read again"
    return Way(strategy=Strategy.ACCUMULATE, why=added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is known about the rows of a task before it runs."""

    changed: Mapping[str, float]
    """By dataset: about how many rows changed or cross a border."""
    entities: int
    """The entities that are published."""

    @property
    def share(self) -> float:
        """The part of the entities that those rows belong to, if they belong to each alike."""
        rows = sum(self.changed.values())
        return 1 - math.exp(-rows / max(self.entities, 1))


def choose_strategy(
    node: Node,
    task: Task,
    record: NodeRecord | None,
    observed: Observed,
    settings: Settings,
    draft: Draft,
) -> Task:
    """The task with the cheapest strategy that is right, and the reason for it.

    It is left as it is unless it follows changed inputs or the clock: a person, an invalidation or another
    configuration ask for rows to be computed again.
    """
    follows = task.cause in FOLLOWING
    if not node.traits.origins or task.strategy is not Strategy.RECOMPUTE or not follows or record is None:
        return task
    before = datetime.fromisoformat(record.as_of) if record.as_of else None
    moved = before is not None and task.as_of is not None and before != task.as_of
    changing = {i.dataset for i in task.inputs if i.changes}
    written = record.configs[-1].parts if record.configs else {}
    followed = [o for o in node.traits.origins if written.get(o.part) == node.config.parts[o.part]]
    touched = [o for o in followed if _is_touched(o, changing, moved=moved)]
    added = [o for o in touched if _is_added(o, changing, observed)]
    changed: dict[str, float] = {}
    for input_ in task.inputs:
        if any(o.dataset == input_.dataset for o in touched):
            changed[input_.dataset] = estimate_changed(input_, observed, draft.tasks, draft.increments).rows
    clock, now = node.traits.own_clock, task.as_of
    if moved and clock is not None and before is not None and now is not None:
        for dataset, rows in _estimate_crossing(clock, touched, before, now, observed).items():
            changed[dataset] = changed.get(dataset, 0) + rows
    of_task = Estimates(changed=changed, entities=record.row_count)
    recomputed = [o for o in touched if o not in added and o.accumulation is not None]
    read = sum(changed.values()) + of_task.share * _count_section(recomputed, clock, now, observed)
    full = sum(
        _count_rows(dataset, observed) for dataset in {o.dataset for o in node.traits.origins if o.dataset}
    )
    thresholds = settings.thresholds
    if full > thresholds.incremental_rows and read * 100 > full * thresholds.full_percent:
        reason = _tell_full(task.reason, of_task, read, full)
        origins = find_origins(task.scope)
        whole = make_full_task(node, observed, draft, task.cause, reason, new=False, origins=origins)
        return replace(whole, as_of=task.as_of)
    if not added:
        return task
    reason = f"{task.reason}; {_list_names(added)} accumulate{'s' if len(added) == 1 else ''}"
    if recomputed:
        reason += f", {_list_names(recomputed)} {'is' if len(recomputed) == 1 else 'are'} recomputed"
    return replace(task, strategy=Strategy.ACCUMULATE, reason=reason)


def _is_touched(origin: ColumnOrigin, changing: Collection[str], *, moved: bool) -> bool:
    of = origin.accumulation
    if of is None:
        return False
    return (
        origin.dataset in changing
        or any(d in changing for d in of.found_in)
        or (moved and bool(origin.borders))
    )


def _is_added(origin: ColumnOrigin, changing: Collection[str], observed: Observed) -> bool:
    of = origin.accumulation
    if of is None or find_delay(of, changing):
        return False
    return find_way(origin, observed).strategy is Strategy.ACCUMULATE


def _estimate_crossing(
    clock: OwnClock, touched: Collection[ColumnOrigin], before: datetime, now: datetime, observed: Observed
) -> dict[str, float]:
    """By dataset: about how many rows cross a border."""
    crossing: dict[str, float] = {}
    for border in dict.fromkeys(border for origin in touched for border in origin.borders):
        files = observed.ranges.get((border.dataset, border.column), ())
        rows = clock.estimate_crossing(border, before, now, files)
        crossing[border.dataset] = crossing.get(border.dataset, 0) + rows
    return {dataset: min(rows, _count_rows(dataset, observed)) for dataset, rows in crossing.items()}


def _count_section(
    recomputed: Collection[ColumnOrigin], clock: OwnClock | None, now: datetime | None, observed: Observed
) -> float:
    """About how many rows the columns that are computed again read, of all entities."""
    sections: dict[str, float] = {}
    for origin in recomputed:
        rows = float(_count_rows(origin.dataset, observed))
        if origin.section is not None and clock is not None and now is not None:
            rows = min(rows, _count_since(origin.section, clock, now, observed, rows))
        sections[origin.dataset] = max(sections.get(origin.dataset, 0), rows)
    return sum(sections.values())


def _count_since(
    border: WatchedBorder, clock: OwnClock, now: datetime, observed: Observed, rows: float
) -> float:
    files = observed.ranges.get((border.dataset, border.column))
    return rows if files is None else clock.estimate_section(border, now, files)


def _count_rows(dataset: str, observed: Observed) -> int:
    record, table = observed.view.nodes.get(dataset), observed.tables.get(dataset)
    return record.row_count if record and record.row_count else table.rows if table else 0


def _tell_full(reason: str, of_task: Estimates, read: float, full: int) -> str:
    return (
        f"{reason}; about {round(100 * of_task.share)} % of the entities are affected, and to compute them"
        f" alone would read about {round(read):,} of {full:,} rows: everything takes no longer"
    )


def _list_names(origins: Collection[ColumnOrigin]) -> str:
    names = [f"`{origin.name}`" for origin in origins]
    if len(names) <= 3:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{', '.join(names[:2])} and {len(names) - 2} more"
