"""Fills the outbox: events that were recorded become deliveries, in the transaction that moves the cursor.

The cursor of a trigger says up to which version of its events table everything is owed. It is opened before
the first event is recorded. So a trigger that has events and no cursor is one whose catalog was lost.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from strandline.catalog import Catalog, enqueue_deliveries, find_delivery_cursor
from strandline.lake.appended import RowsGoneError
from strandline.lake.events import (
    EventTable,
    find_event_table,
    read_recent_events,
    read_told_events,
)
from strandline.lake.location import Lake
from strandline.lake.log import read_entries
from strandline.model.deliveries import NewDelivery, find_owed_since
from strandline.model.endpoints import Endpoint
from strandline.model.errors import ConflictError, OutsideError
from strandline.model.events import Event, make_body
from strandline.model.node import Node, Project

from .failpoints import reach

Events = tuple[tuple[Event, datetime], ...]
"""Each with the time at which it was recorded."""
_AT_ONCE = 5_000
"""At most this many events become deliveries in one transaction, unless more are of one change."""
_OPENED = ""
"""The table id of a cursor that was opened before the table existed: nothing was owed yet."""
_LOST = "?"
"""The table id of a cursor whose place was lost, while what may still be owed is recorded in parts."""
_OVERTAKEN = 5
_SKEW = timedelta(minutes=1)
"""How far the clocks of two writers of one table may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What filling the outbox came to."""

    owed: int = 0
    """Deliveries that are new."""
    notes: tuple[str, ...] = ()
    """Gaps: what may be owed again, or no longer (L13)."""
    failures: Mapping[str, str] | None = None
    """By trigger whose events cannot be read: why. They wait for the next time."""

    @property
    def lines(self) -> tuple[str, ...]:
        failed = (self.failures or {}).items()
        return (*self.notes, *(f"the events of `{name}` are not owed yet: {why}" for name, why in failed))


def fill_outbox(
    project: Project, catalog: Catalog, lake: Lake, now: Callable[[], datetime], most: int = _AT_ONCE
) -> Filled:
    """Owe what the triggers have recorded since the last time. Any number of processes may do so at once."""
    owed, notes, failures = 0, list[str](), dict[str, str]()
    for node in project.nodes:
        if node.traits.told_to is None:
            continue
        endpoints = tuple(project.endpoints[name] for name in node.traits.told_to)
        filling = _Filling(
            node=node, endpoints=endpoints, catalog=catalog, uri=lake.table(node.name), now=now, most=most
        )
        try:
            owed += filling.fill(notes)
        except OutsideError as error:
            failures[node.name] = str(error)
    return Filled(owed=owed, notes=tuple(notes), failures=failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filling:
    node: Node
    endpoints: tuple[Endpoint, ...]
    """The endpoints that are told, as they are declared now."""
    catalog: Catalog
    uri: str
    now: Callable[[], datetime]
    most: int

    def fill(self, notes: list[str]) -> int:
        """Owe what the cursor has not passed. If another process moves it meanwhile, go on from there."""
        owed = 0
        for nth in range(_OVERTAKEN):
            table = find_event_table(self.uri)
            cursor = find_delivery_cursor(self.catalog, self.node.name)
            try:
                if table is None:
                    if cursor is None:
                        self._move(None, (_OPENED, -1), ())
                elif cursor is None or not _continues(cursor, table):
                    owed += self._fill_recent(table, cursor, None, notes)
                else:
                    owed += self._fill_new(table, cursor, notes)
                return owed
            except ConflictError:
                if nth == _OVERTAKEN - 1:
                    return owed  # whoever is faster goes on
        raise AssertionError("unreachable")

    def _fill_new(self, table: EventTable, cursor: tuple[str, int], notes: list[str]) -> int:
        """Owe what was recorded after the cursor: small commits together, a large one in parts."""
        owed, waiting, here, done = 0, list[tuple[Event, datetime]](), cursor, cursor[1]
        try:
            for part in read_told_events(self.uri, self.node.name, cursor[1], table.version, self.most):
                if waiting and len(waiting) + len(part.events) > self.most:
                    owed += self._move(here, (table.id, done), self._owe(waiting))
                    here, waiting = (table.id, done), []
                waiting += part.events
                done = part.upto
        except RowsGoneError:
            return owed + self._fill_recent(table, here, _recorded_since(self.uri, here), notes)
        if waiting or here != (table.id, table.version):
            owed += self._move(here, (table.id, table.version), self._owe(waiting))
        return owed

    def _fill_recent(
        self, table: EventTable, cursor: tuple[str, int] | None, since: datetime | None, notes: list[str]
    ) -> int:
        """Owe again what may be inside its retry schedule: nobody knows what of it was delivered (L6).

        `since`: everything from then on has not been owed before.
        """
        owed = 0
        begins = {one.name: since or find_owed_since(self.now(), one.retry) for one in self.endpoints}
        if begins:
            recent = read_recent_events(
                self.uri, self.node.name, table.version, min(begins.values()), self.most
            )
            for events in explaining_gone(self.node.name, recent):
                here = cursor or (_LOST, -1)
                owed += self._move(cursor, here, self._owe(events, begins))
                cursor = here
        owed += self._move(cursor, (table.id, table.version), ())
        first = min(begins.values(), default=None)
        if first is not None and since is None:
            notes.append(
                f"the catalog did not know which events of `{self.node.name}` were delivered:"
                f" those recorded since {first:%Y-%m-%dT%H:%M:%SZ} are owed ({owed:,} new)"
            )
        return owed

    def _owe(
        self,
        events: Iterable[tuple[Event, datetime]],
        begins: Mapping[str, datetime] | None = None,
    ) -> list[NewDelivery]:
        """A delivery for each event and endpoint. `begins`: by endpoint, from when on events are owed."""
        return [
            make_delivery(self.node.name, event, recorded_at, endpoint.name)
            for event, recorded_at in events
            for endpoint in self.endpoints
            if begins is None or recorded_at >= begins[endpoint.name]
        ]

    def _move(
        self, before: tuple[str, int] | None, after: tuple[str, int], owed: Collection[NewDelivery]
    ) -> int:
        reach("before-fill", self.node.name)
        new = enqueue_deliveries(self.catalog, self.node.name, before, after, owed)
        reach("after-fill", self.node.name)
        return new


def make_delivery(trigger: str, event: Event, recorded_at: datetime, endpoint: str) -> NewDelivery:
    return NewDelivery(
        event_id=event.event_id,
        event_type=str(event.event_type),
        trigger=trigger,
        endpoint=endpoint,
        key=event.key,
        source_timestamp=event.source_timestamp,
        body=make_body(event, recorded_at),
    )


def explaining_gone(trigger: str, parts: Iterable[Events]) -> Iterator[Events]:
    """The same parts. If files of the table are gone, an operator must act."""
    try:
        yield from parts
    except RowsGoneError as error:
        raise OutsideError(
            f"A file of the events of `{trigger}` is gone.",
            remedy="Run `strandline doctor --deep`; the table's files were moved or removed.",
            slug="lake-unreadable",
        ) from error


def _continues(cursor: tuple[str, int], table: EventTable) -> bool:
    """Whether a cursor is a place in this table."""
    return cursor[0] == _OPENED or (cursor[0] == table.id and cursor[1] <= table.version)


def _recorded_since(uri: str, cursor: tuple[str, int]) -> datetime | None:
    """From when on events were recorded that a cursor has not passed. None if that cannot be told."""
    at = next((e.committed_at for e in read_entries(uri, cursor[1] - 1) if e.version == cursor[1]), None)
    return at - _SKEW if at else None
