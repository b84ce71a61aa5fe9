"""The events of a trigger, read from its table without Spark, in the order in which they were recorded.

The table is only appended to, so what a commit recorded is what is in the files that it added. Quiet events
are left out: nobody is told about them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.dataset

from strandline.model.events import EVENT_COLUMNS, Event, EventType

from .appended import RowsGoneError, read_windows
from .log import read_entries
from .table import Table, get_table, open_table

_COLUMNS = (*EVENT_COLUMNS, "recorded_at")
_PLACE = ("revision", "version", "position")
"""The versions of a dataset may begin anew. Then a revision begins, too."""
_TOLD = ~pyarrow.dataset.field("quiet")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvents:
    """Some events of one commit."""

    upto: int
    """Everything up to this version has been read once these events have."""
    events: tuple[tuple[Event, datetime], ...]
    """Each with the time at which it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTable:
    """The table of a trigger's events as it is now."""

    id: str
    version: int


def find_event_table(uri: str) -> EventTable | None:
    table = open_table(uri)
    return EventTable(id=table.id, version=table.version) if table else None


def read_told_events(uri: str, trigger: str, after: int, upto: int, most: int) -> Iterator[RecordedEvents]:
    """The events that commits after one version, up to another, recorded: at most `most` at once.

    Raises RowsGoneError if that cannot be told commit by commit.
    """
    table, expected = get_table(uri, upto), after + 1
    for entry in read_entries(uri, after):
        if entry.version > upto:
            break
        if entry.version != expected:
            raise RowsGoneError
        expected += 1
        # What somebody else wrote is no event: nobody is told, and the trigger's table is written anew.
        if entry.metadata is not None and entry.changes_rows and entry.added:
            paths = [file.path for file in entry.added]
            rows, size = sum(file.rows for file in entry.added), sum(file.bytes for file in entry.added)
            parts = _read(table, trigger, paths, size, _TOLD, whole=rows <= most, most=most)
            last: tuple[tuple[Event, datetime], ...] | None = None
            for events in parts:
                if last is not None:
                    yield RecordedEvents(upto=entry.version - 1, events=last)
                last = events
            yield RecordedEvents(upto=entry.version, events=last or ())
    if expected != upto + 1:
        raise RowsGoneError


def read_recent_events(
    uri: str, trigger: str, upto: int, since: datetime, most: int
) -> Iterator[tuple[tuple[Event, datetime], ...]]:
    """All events that were recorded at this time or later, at most `most` at once."""
    table = get_table(uri, upto)
    recent = _TOLD & (pyarrow.dataset.field("recorded_at") >= pa.scalar(since, pa.timestamp("us", "UTC")))
    yield from _read(table, trigger, table.paths, table.bytes, recent, whole=table.rows <= most, most=most)


def read_event(
    uri: str, trigger: str, upto: int, event_id: str
) -> Iterator[tuple[tuple[Event, datetime], ...]]:
    """The event with an id, if it is told and there is one."""
    table = get_table(uri, upto)
    named = _TOLD & (pyarrow.dataset.field("event_id") == event_id)
    yield from _read(table, trigger, table.paths, table.bytes, named, whole=True, most=1)


def _read(
    table: Table,
    trigger: str,
    paths: Sequence[str],
    size: int,
    wanted: pyarrow.dataset.Expression,
    *,
    whole: bool,
    most: int,
) -> Iterator[tuple[tuple[Event, datetime], ...]]:
    for rows in read_windows(table, _COLUMNS, paths, size, wanted, whole=whole, most=most, place=_PLACE):
        yield tuple(_event(trigger, row) for row in rows)


def _event(trigger: str, row: dict[str, object]) -> tuple[Event, datetime]:
    recorded_at = row.pop("recorded_at")
    assert isinstance(recorded_at, datetime)
    fields = {**row, "event_type": EventType(str(row["event_type"]))}
    return Event(trigger=trigger, **fields), recorded_at  # type: ignore[arg-type]
