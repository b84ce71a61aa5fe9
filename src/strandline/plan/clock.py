"""The scope of a node that has to be computed again because `as_of` has moved."""

from datetime import datetime

from strandline.model.business_dates import last_day_due, weekdays
from strandline.model.catalog_records import NodeRecord
from strandline.model.node import Node
from strandline.model.own_clock import ColumnRange
from strandline.model.plan import Task
from strandline.model.scope import EVERYTHING, NOTHING, ClockMove, Scope
from strandline.model.traits import OnClock

from .draft import following
from .request import Observed, PlanRequest


def find_clock_scope(node: Node, record: NodeRecord, observed: Observed, request: PlanRequest) -> Scope:
    """Empty for a node that does not depend on `as_of`, and while `as_of` is the recorded one."""
    at = settle_as_of(node, record, request)
    now = at.isoformat()
    if record.as_of == now:
        return NOTHING
    if node.traits.own_clock is not None and node.traits.clock is OnClock.SCOPE:
        crossing = count_crossing(node, record, observed, at)
        return NOTHING if crossing is None else following(node, (ClockMove(before=record.as_of, now=now),))
    if node.traits.business_dates is not None and not _are_due(node, record, observed, request):
        return NOTHING
    match node.traits.clock:
        case OnClock.NOTHING:
            return NOTHING
        case OnClock.EVERYTHING:
            return EVERYTHING
        case OnClock.SCOPE:
            return following(node, (ClockMove(before=record.as_of, now=now),))


def settle_as_of(node: Node, record: NodeRecord | None, request: PlanRequest) -> datetime:
    """The `as_of` at which a task of a node is computed.

    A clock of its own stands still between its steps, and goes back only to a time that a person named.
    """
    clock = node.traits.own_clock
    if clock is None:
        return request.as_of
    now = clock.read(request.as_of)
    if record is None or not record.as_of or request.goes_back:
        return now
    return max(now, datetime.fromisoformat(record.as_of))


def count_crossing(node: Node, record: NodeRecord, observed: Observed, now: datetime) -> int | None:
    """About how many rows may cross a border since the node was last computed: those of the files reached.

    None if no file is reached. Then nothing is recorded, and the next move starts from the same time again.
    """
    clock = node.traits.own_clock
    if clock is None or not record.as_of:
        return 0
    before = datetime.fromisoformat(record.as_of)
    reached: dict[str, int] = {}
    for border in clock.borders:
        if border.dataset not in observed.tables:
            continue  # it was never received, so no row of it crosses anything
        files = observed.ranges.get((border.dataset, border.column), (_UNKNOWN,))
        if found := clock.find_reached(border, before, now, files):
            rows = sum(file.rows for file in found)
            reached[border.dataset] = max(reached.get(border.dataset, 0), rows)
    return sum(reached.values()) if reached else None


_UNKNOWN = ColumnRange(low=None, high=None)


def _are_due(node: Node, record: NodeRecord, observed: Observed, request: PlanRequest) -> bool:
    """Whether a business date has become due since the node was last computed."""
    dates = node.traits.business_dates
    assert dates is not None
    before = last_day_due(datetime.fromisoformat(record.as_of), dates)
    now = last_day_due(request.as_of, dates)
    if now <= before:
        return False
    candidates = observed.business_dates.get(node.name, ()) if dates.dataset else weekdays(before, now)
    return any(before < day <= now for day in candidates)


def tell_clock_ahead(
    node: Node, record: NodeRecord | None, request: PlanRequest, task: Task | None
) -> str | None:
    """A sentence if a node stays at dates that are not due yet at the requested `as_of`."""
    dates = node.traits.business_dates
    if dates is None or record is None or not record.as_of:
        return None
    stays_at = last_day_due(datetime.fromisoformat(record.as_of), dates)
    if (task and task.rebuilds) or stays_at <= last_day_due(request.as_of, dates):
        return None
    return (
        f"{node.name} is valued up to {stays_at}, and a run does not go back to {request.as_of.isoformat()}."
        f" `strandline backfill {node.name} --all --as-of {request.as_of.isoformat()}` does."
    )


def effective_as_of(node: Node, record: NodeRecord | None, as_of: datetime, task: Task) -> datetime:
    """The `as_of` at which a node is computed. The clock of a valuation goes back only when it is rebuilt.

    A clock of its own was read when the task was planned.
    """
    if task.as_of is not None:
        return task.as_of
    if node.traits.business_dates is None or record is None or not record.as_of or task.rebuilds:
        return as_of
    return max(as_of, datetime.fromisoformat(record.as_of))
