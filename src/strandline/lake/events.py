"""The events of a trigger, read from its table without Spark, in the order in which they were recorded.

The table is only appended to, so what a commit recorded is what is in the files that it added. Quiet events
are left out: nobody is told about them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from strandline.model.errors import OutsideError
from strandline.model.events import EVENT_COLUMNS, Event, EventType

from .checksums import require_sound
from .location import open_folder
from .log import read_entries
from .plain_values import plain_rows
from .query import CHECKED_PARQUET
from .table import Table, get_table, open_table

_COLUMNS = (*EVENT_COLUMNS, "recorded_at")
_TOLD = ~pyarrow.dataset.field("quiet")
Place = tuple[int, int]
"""Version and position: the change that caused an event."""


class EventsGoneError(Exception):
    """What commits recorded can no longer be read commit by commit: log entries or files are gone."""


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

    Raises EventsGoneError if that cannot be told commit by commit.
    """
    table, expected = get_table(uri, upto), after + 1
    for entry in read_entries(uri, after):
        if entry.version > upto:
            break
        if entry.version != expected:
            raise EventsGoneError
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
        raise EventsGoneError


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
    if not paths:
        return
    file_system, root = open_folder(table.uri)
    files = [f"{root}/{path}" if root else path for path in paths]
    if any(info.type is pyarrow.fs.FileType.NotFound for info in file_system.get_file_info(files)):
        raise EventsGoneError
    require_sound(table.uri, paths, size)
    try:
        content = pyarrow.dataset.dataset(files, table.arrow_schema, CHECKED_PARQUET, file_system)
        windows = [wanted] if whole else [wanted & window for window in _cut(content, wanted, most)]
        for window in windows:
            rows = plain_rows(content.to_table(list(_COLUMNS), window))
            rows.sort(key=lambda row: (row["version"], row["position"]))
            yield tuple(_event(trigger, row) for row in rows)
    except (OSError, pa.ArrowException) as error:
        raise OutsideError(
            f"The events of `{trigger}` cannot be read: {' '.join(str(error).split())}",
            remedy="Run `strandline doctor --deep`; the table's files were moved, removed or damaged.",
            slug="lake-unreadable",
        ) from error


def _cut(
    content: pyarrow.dataset.Dataset, wanted: pyarrow.dataset.Expression, most: int
) -> list[pyarrow.dataset.Expression]:
    """Conditions that divide events into windows of about `most`, in order. Only their places are read."""
    places = content.to_table(["version", "position"], wanted).sort_by(
        [("version", "ascending"), ("position", "ascending")]
    )
    starts = places.take(list(range(0, places.num_rows, most)))
    edges: list[Place] = list(
        dict.fromkeys(zip(starts["version"].to_pylist(), starts["position"].to_pylist(), strict=True))
    )
    return [
        _from(edge) & ~_from(edges[nth + 1]) if nth + 1 < len(edges) else _from(edge)
        for nth, edge in enumerate(edges)
    ]


def _from(place: Place) -> pyarrow.dataset.Expression:
    version, position = pyarrow.dataset.field("version"), pyarrow.dataset.field("position")
    return (version > place[0]) | ((version == place[0]) & (position >= place[1]))


def _event(trigger: str, row: dict[str, object]) -> tuple[Event, datetime]:
    recorded_at = row.pop("recorded_at")
    assert isinstance(recorded_at, datetime)
    fields = {**row, "event_type": EventType(str(row["event_type"]))}
    return Event(trigger=trigger, **fields), recorded_at  # type: ignore[arg-type]
