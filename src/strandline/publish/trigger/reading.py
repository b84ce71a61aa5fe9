"""What a trigger reads of its change log: from where on, and the changes with values of their types."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa

from strandline.lake.location import Lake
from strandline.lake.log import LogEntry, read_entries, read_entries_since
from strandline.lake.reads import scan_added
from strandline.model.columns import ColumnType
from strandline.model.commits import Operation
from strandline.model.plan import Cursor
from strandline.publish.change_log.pieces import find_first_named
from strandline.publish.changes import Change, RowChange

from .typed_rows import read_typed

_COLUMNS = ("version", "position", "operation", "key", "source_timestamp", "data", "before")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The part of a change log that a trigger has not folded yet."""

    after: int
    """The version of the log after which it begins."""
    from_version: int = 0
    """Changes of earlier versions of the dataset in it were folded, or came before the trigger."""
    broken: bool = False
    """The log is another one than before. What it says begins anew."""


def find_unread(
    name: str,
    cursor: Cursor | None,
    now: Cursor,
    dataset: str,
    log_entries: Sequence[LogEntry],
    dataset_entries: Sequence[LogEntry],
) -> Unread:
    """The entries are those up to what is read: all of them, or if there is a cursor, what it needs of them.

    That is what `read_log_entries` and `read_dataset_entries` give.
    """
    if cursor is None:
        return _find_first(name, now, dataset, log_entries, dataset_entries)
    if cursor.table_id != now.table_id or cursor.version > now.version:
        return Unread(after=now.version, broken=True)
    rewritten = [
        e.version
        for e in log_entries
        if e.version > cursor.version and e.metadata and e.metadata.operation is Operation.OVERWRITE
    ]
    if not rewritten:
        return Unread(after=cursor.version)
    folded = find_covered(log_entries, dataset, cursor.version)
    return Unread(after=rewritten[-1] - 1, from_version=folded + 1)


def _find_first(
    name: str,
    now: Cursor,
    dataset: str,
    log_entries: Sequence[LogEntry],
    dataset_entries: Sequence[LogEntry],
) -> Unread:
    """A new trigger begins with the first commit that was made while it was declared."""
    covered = find_covered(log_entries, dataset, now.version)
    first = find_first_named(dataset_entries, name, covered)
    if first is None:
        return Unread(after=now.version)
    telling = [e for e in log_entries if e.metadata and dataset in e.metadata.inputs]
    before = [e.version for e in telling if find_covered([e], dataset, e.version) < first]
    rewritten = [e.version for e in log_entries if e.metadata and e.metadata.operation is Operation.OVERWRITE]
    cleaned = [e.metadata.readable_from for e in log_entries if e.metadata and e.metadata.readable_from]
    return Unread(
        after=max((*before, *cleaned, *(version - 1 for version in rewritten)), default=-1),
        from_version=first,
    )


def read_log_entries(uri: str, dataset: str, cursor: Cursor | None, upto: int) -> list[LogEntry]:
    """The commits of the log since the cursor, and before them back to the last that tells of the dataset."""
    if cursor is None:
        return [e for e in read_entries(uri, -1) if e.version <= upto]
    return read_entries_since(uri, cursor.version, upto, lambda e: _cursor_in(e, dataset) is not None)


def read_dataset_entries(
    uri: str, dataset: str, log_entries: Sequence[LogEntry], cursor: Cursor | None, upto: int
) -> list[LogEntry]:
    """The commits of the dataset, up to a version, that the unread part of the log may tell of."""
    after = find_folded(log_entries, dataset, cursor)
    return [e for e in read_entries(uri, after) if e.version <= upto]


def find_folded(log_entries: Sequence[LogEntry], dataset: str, cursor: Cursor | None) -> int:
    """Everything up to this version of the dataset was folded. -1 if the versions began anew since then."""
    telling = [(e.version, at) for e in log_entries if (at := _cursor_in(e, dataset)) is not None]
    if cursor is None or not telling or telling[0][0] > cursor.version:
        return -1
    return telling[0][1].version if len({at.table_id for _, at in telling}) == 1 else -1


def _cursor_in(entry: LogEntry, dataset: str) -> Cursor | None:
    return entry.metadata.inputs.get(dataset) if entry.metadata else None


def find_covered(log_entries: Sequence[LogEntry], dataset: str, upto: int) -> int:
    """The version of the dataset up to which the log tells, once it is at a version of its own."""
    covered = -1
    for entry in log_entries:
        if entry.version <= upto and entry.metadata and dataset in entry.metadata.inputs:
            covered = entry.metadata.inputs[dataset].version
    return covered


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReader:
    """Reads the unread changes, as often as needed: once for each share of the keys."""

    lake: Lake
    log: str
    unread: Unread
    upto: int
    """The version of the log that is read."""
    told: frozenset[int]
    """The versions of the dataset that were committed while the trigger was declared."""
    kinds: Mapping[str, ColumnType]
    """The types of the columns that the conditions use."""
    shares: int

    def read(self, share: int) -> list[RowChange]:
        """The changes of one share of the keys, in the order of the log. A RESET belongs to all shares."""
        changes: list[tuple[int, int, int, RowChange]] = []
        for commit, batch in self._scan(_COLUMNS):
            for row in batch.to_pylist():
                if row["version"] >= self.unread.from_version and self._is_in(row["key"], share):
                    change = self._make(row)
                    changes.append((commit, change.version, change.position, change))
        changes.sort(key=lambda placed: placed[:3])
        return [change for *_, change in changes]

    def has_existing(self) -> bool:
        """Whether some changes only set the state: it was not declared then, or the log cannot tell."""
        return any(
            row["version"] >= self.unread.from_version
            and (row["operation"] == Change.RESET or row["version"] not in self.told)
            for _, batch in self._scan(("version", "operation"))
            for row in batch.to_pylist()
        )

    def has_reset(self) -> bool:
        """Whether the log could not tell what changed. Versions or keys may have begun anew there."""
        return any(
            Change.RESET in batch.column("operation").to_pylist() for _, batch in self._scan(("operation",))
        )

    def _scan(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        return scan_added(self.lake, self.log, self.unread.after, self.upto, columns)

    def _is_in(self, key: str | None, share: int) -> bool:
        return key is None or self.shares == 1 or crc32(key.encode()) % self.shares == share

    def _make(self, row: Mapping[str, Any]) -> RowChange:
        operation = Change(row["operation"])
        now = json.loads(row["data"]) if row["data"] is not None else None
        then: dict[str, Any] | None = None
        if operation is Change.DELETE:
            then, now = now, None
        elif operation is Change.UPDATE:
            assert now is not None
            then = {**now, **json.loads(row["before"])}
        return RowChange(
            version=row["version"],
            position=row["position"],
            operation=operation,
            key=row["key"] or "",
            source_timestamp=row["source_timestamp"] or 0,
            data=row["data"] or "",
            row=read_typed(now, self.kinds),
            old=read_typed(then, self.kinds),
            told=row["version"] in self.told,
        )


def list_keys(changes: Sequence[RowChange]) -> Iterator[str]:
    """The keys of changes, each once."""
    yield from dict.fromkeys(change.key for change in changes if change.operation is not Change.RESET)
