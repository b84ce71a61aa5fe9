"""A change log, read without Spark: after a place, and as it grows.

A log is only appended to. What was told before its last RESET, or before it was written anew, is of no use to
a reader who comes now.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pyarrow as pa
import pyarrow.dataset

from strandline.model.commits import Operation
from strandline.model.errors import OutsideError

from .appended import EVERY_ROW, Place, RowsGoneError, at_or_after, read_windows
from .log import LogEntry, find_log, read_entries
from .table import Table, get_table, open_table

RESET = "RESET"
_COLUMNS = ("version", "position", "operation", "key", "source_timestamp", "fields", "data", "before")
_PLACE, _PUBLISHED = ("version", "position"), "published_at"
_IS_RESET = pyarrow.dataset.field("operation") == RESET
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A row of a change log."""

    version: int
    position: int
    operation: str
    key: str
    source_timestamp: int | None
    fields: tuple[str, ...]
    data: str
    """The row as JSON. Of a DELETE, the last one. Empty for a RESET."""
    before: str | None
    """The former values of `fields`, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """What a change log has told so far."""

    table: str
    """The id of its table, and the last time it was written anew."""
    log_version: int
    """The version of the log up to which this is so."""
    covered: int
    """The version of the dataset up to which it is complete. -1: it has told nothing."""
    began: int
    """When it told its last RESET, in microseconds since 1970. 0 if it has told none."""
    reset_at: int
    """The version of the dataset of that RESET. -1 if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Some rows that a commit appended, in order."""

    rows: tuple[ChangeRow, ...]
    place: LogPlace
    """What the log has told after them."""
    complete: bool
    """They are the last rows of their commit."""


class LogReplacedError(Exception):
    """The log is another one than before, or what it was appended cannot be told apart any more."""


def find_place(uri: str, dataset: str) -> LogPlace | None:
    """What a log has told so far. None if there is no log. `dataset` is the node whose changes it tells."""
    try:
        with _explained(uri):
            return _find_place(uri, dataset)
    except LogReplacedError as error:
        raise OutsideError(
            f"Files of the log of `{uri}` are gone.",
            remedy="Run `strandline doctor --deep`: somebody moved or removed them.",
            slug="table-unreadable",
        ) from error


def _find_place(uri: str, dataset: str) -> LogPlace | None:
    table = open_table(uri)
    if table is None:
        return None
    place = LogPlace(table="", log_version=table.version, covered=-1, began=0, reset_at=-1)
    rewritten = -1
    for entry in read_entries(uri, -1):
        if entry.version <= table.version:
            rewritten = entry.version if _is_anew(entry) else rewritten
            place = _cover(place, entry, dataset)
    place = replace(place, table=sha256(f"{table.id}:{rewritten}".encode()).hexdigest()[:8])
    resets = [
        (_count_microseconds(row), int(str(row["version"])))
        for rows in _read(table, [*_PLACE, _PUBLISHED], table.paths, table.bytes, _IS_RESET)
        for row in rows
    ]
    return replace(place, began=max(resets)[0], reset_at=max(resets)[1]) if resets else place


def look(uri: str) -> tuple[int, int]:
    """Differs whenever there may be something to read, or another table. It costs a look at a few files."""
    with _explained(uri):
        return find_log(uri).newest()


def read_told(uri: str, dataset: str, place: LogPlace, most: int) -> Iterator[Told]:
    """What was appended after a place, about `most` rows at once. Raises LogReplacedError."""
    with _explained(uri):
        yield from _read_told(uri, dataset, place, most)


def _read_told(uri: str, dataset: str, place: LogPlace, most: int) -> Iterator[Told]:
    for entry in read_entries(uri, place.log_version):
        if entry.version != place.log_version + 1 or _is_anew(entry):
            raise LogReplacedError
        waiting: Told | None = None
        for told in _read_added(uri, entry, place, most):
            if waiting is not None:
                yield waiting
            waiting = told
        place = waiting.place if waiting else place
        place = _cover(replace(place, log_version=entry.version), entry, dataset)
        yield Told(rows=waiting.rows if waiting else (), place=place, complete=True)


def read_after(uri: str, place: LogPlace, after: Place, most: int) -> Iterator[tuple[ChangeRow, ...]]:
    """What the log, as it was at a place, tells after a place in it. Raises LogReplacedError."""
    table = get_table(uri, place.log_version)
    wanted = at_or_after((after[0], after[1] + 1))
    if place.began:
        began = pa.scalar(_EPOCH + place.began * _MICROSECOND, pa.timestamp("us", "UTC"))
        published, version = pyarrow.dataset.field(_PUBLISHED), pyarrow.dataset.field("version")
        wanted &= (published > began) | ((published == began) & (version > place.reset_at))
    for rows in _read(table, _COLUMNS, table.paths, table.bytes, wanted, table.rows <= most, most):
        yield tuple(_make_row(row) for row in rows)


@contextmanager
def _explained(uri: str) -> Iterator[None]:
    """Turn the error of a storage that fails while a log is read into one that says so."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OutsideError(
            f"The log of `{uri}` cannot be read: {' '.join(str(error).split())}",
            remedy="Run `strandline doctor`. If the storage can be reached, the table's log is damaged.",
            slug="table-unreadable",
        ) from error


def _read_added(uri: str, entry: LogEntry, place: LogPlace, most: int) -> Iterator[Told]:
    """The rows that a commit added. A RESET changes the place. What somebody else wrote is no change."""
    if entry.metadata is None or not entry.changes_rows or not entry.added:
        return
    paths, size = [file.path for file in entry.added], sum(file.bytes for file in entry.added)
    whole = sum(file.rows for file in entry.added) <= most
    columns = (*_COLUMNS, _PUBLISHED)
    for rows in _read(get_table(uri), columns, paths, size, EVERY_ROW, whole, most):
        for row in rows:
            if row["operation"] == RESET:
                reset_at = int(str(row["version"]))
                place = replace(place, began=_count_microseconds(row), reset_at=reset_at)
        yield Told(rows=tuple(_make_row(row) for row in rows), place=place, complete=False)


def _read(
    table: Table,
    columns: Sequence[str],
    paths: Sequence[str],
    size: int,
    wanted: pyarrow.dataset.Expression,
    whole: bool = True,
    most: int = 1,
) -> Iterator[list[dict[str, object]]]:
    try:
        yield from read_windows(table, columns, paths, size, wanted, whole=whole, most=most)
    except RowsGoneError as error:
        raise LogReplacedError from error


def _cover(place: LogPlace, entry: LogEntry, dataset: str) -> LogPlace:
    """The place with what a commit says about how far the dataset has been read."""
    if entry.metadata is None or dataset not in entry.metadata.inputs:
        return place
    return replace(place, covered=entry.metadata.inputs[dataset].version)


def _is_anew(entry: LogEntry) -> bool:
    return entry.metadata is not None and entry.metadata.operation is Operation.OVERWRITE


def _count_microseconds(row: dict[str, object]) -> int:
    at = row[_PUBLISHED]
    assert isinstance(at, datetime)
    return (at - _EPOCH) // _MICROSECOND


def _make_row(row: dict[str, object]) -> ChangeRow:
    values = {name: row[name] for name in _COLUMNS}
    fields = row["fields"]
    assert fields is None or isinstance(fields, list)
    texts = {name: row[name] or "" for name in ("key", "data")}
    return ChangeRow(**{**values, **texts, "fields": tuple(fields or ())})  # type: ignore[arg-type]
