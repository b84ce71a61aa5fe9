"""Owes deliveries again that `maintain` has removed: the events stay for ever, so id and bytes are the same.

An event without a delivery may never have been owed: its endpoint was declared later. So a range takes only
events that are old enough for their deliveries to be removed. Whoever names one delivery gets it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from strandline.catalog import Catalog, enqueue_deliveries, find_delivery_cursor
from strandline.lake.events import EventTable, find_event_table, read_event, read_recent_events
from strandline.lake.location import Lake
from strandline.model.errors import ConflictError
from strandline.model.node import Node, Project

from .outbox import Events, explaining_gone, make_delivery

_AT_ONCE = 5_000
_OVERTAKEN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRange:
    """Which events are owed again: those recorded at `since` or later, and before `until`."""

    since: datetime
    until: datetime
    trigger: str | None = None
    endpoint: str | None = None


def owe_removed(project: Project, catalog: Catalog, lake: Lake, wanted: RemovedRange) -> int:
    """Owe what has no delivery any more. Returns how many deliveries are new."""
    if wanted.until <= wanted.since:
        return 0
    owed = 0
    for node in _find_triggers(project, wanted.trigger):
        endpoints = [name for name in node.traits.told_to or () if wanted.endpoint in (None, name)]
        table, cursor = find_event_table(lake.table(node.name)), find_delivery_cursor(catalog, node.name)
        if not endpoints or table is None or not _has_passed_events(cursor, table):
            continue  # filling the outbox comes first, and has said why it did not
        assert cursor is not None
        recent = read_recent_events(lake.table(node.name), node.name, cursor[1], wanted.since, _AT_ONCE)
        for events in explaining_gone(node.name, recent):
            chosen = tuple(one for one in events if one[1] < wanted.until)
            owed += _owe(catalog, node.name, chosen, endpoints)
    return owed


def owe_removed_one(project: Project, catalog: Catalog, lake: Lake, delivery_id: str) -> bool:
    """Owe one delivery whose event is there, although no delivery is kept. False if there is none."""
    event_id, _, endpoint = delivery_id.partition("-")
    for node in _find_triggers(project, None):
        table, cursor = find_event_table(lake.table(node.name)), find_delivery_cursor(catalog, node.name)
        if endpoint not in (node.traits.told_to or ()) or table is None:
            continue
        if not _has_passed_events(cursor, table):
            continue
        assert cursor is not None
        found = explaining_gone(node.name, read_event(lake.table(node.name), node.name, cursor[1], event_id))
        if events := tuple(one for part in found for one in part):
            return _owe(catalog, node.name, events, [endpoint]) > 0
    return False


def _has_passed_events(cursor: tuple[str, int] | None, table: EventTable) -> bool:
    """Whether a cursor has passed a whole commit of this table."""
    return cursor is not None and cursor[0] == table.id and cursor[1] >= 0


def _find_triggers(project: Project, name: str | None) -> Iterator[Node]:
    return (n for n in project.nodes if n.traits.told_to is not None and name in (None, n.name))


def _owe(catalog: Catalog, trigger: str, events: Events, endpoints: Sequence[str]) -> int:
    """The cursor of the trigger stays where it is. If another process moves it meanwhile, try again."""
    owed = [make_delivery(trigger, event, at, name) for event, at in events for name in endpoints]
    for _ in range(_OVERTAKEN if owed else 0):
        cursor = find_delivery_cursor(catalog, trigger)
        assert cursor is not None
        try:
            return enqueue_deliveries(catalog, trigger, cursor, cursor, owed)
        except ConflictError:
            continue
    return 0
