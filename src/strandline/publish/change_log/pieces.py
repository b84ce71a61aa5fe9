"""What a change log reads to tell what happened between two versions of its dataset. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from strandline.lake.log import LogEntry
from strandline.model.commits import Operation
from strandline.model.plan import Cursor

MOST_TOLD = 1_000_000
"""A first load or a rewrite of more rows is not told row by row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """It cannot be told what changed up to a version."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A commit that replaced the whole table. Its state is compared with the one before, if there was one."""

    version: int
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Commits that the feed tells about. Each one changed rows."""

    versions: tuple[int, ...]


Piece = Reset | Rewrite | Commits


def find_unread(
    entries: Sequence[LogEntry], name: str, cursor: Cursor | None, now: Cursor, *, redeclared: bool
) -> tuple[Piece, ...]:
    """What a change log can tell since its cursor, or since it was declared.

    `entries` are those of the dataset's log up to what is read: all of them, or those since the cursor with
    at least one of ours before them. `redeclared`: the key of its rows, or the dataset, is another one than
    before.
    """
    readable_from = max((e.metadata.readable_from for e in entries if e.metadata), default=0)
    if cursor is None:
        return _find_first(entries, name, now.version, readable_from)
    other = cursor.table_id != now.table_id
    reaches_back = bool(entries) and entries[0].version <= cursor.version + 1
    if other or cursor.version > now.version or cursor.version < readable_from or not reaches_back:
        return (Reset(version=now.version),)
    if redeclared:
        return (Reset(version=now.version),)
    return find_pieces(entries, cursor.version, now.version)


def _find_first(entries: Sequence[LogEntry], name: str, upto: int, readable_from: int) -> tuple[Piece, ...]:
    """What was there before the log was declared cannot be told, and is not read."""
    first = find_first_named(entries, name, upto)
    if first is None or (readable_from and first <= readable_from):
        return (Reset(version=upto),)
    if not any(e.changes_rows for e in entries if e.version < first):
        return find_pieces(entries, -1, upto)
    return (Reset(version=first - 1), *find_pieces(entries, first - 1, upto))


def find_pieces(entries: Sequence[LogEntry], after: int, upto: int) -> tuple[Piece, ...]:
    """The pieces of a range of versions, oldest first. `entries` are as in `find_unread`."""
    pieces: list[Piece] = []
    commits: list[int] = []
    for entry in entries:
        if not after < entry.version <= upto or not entry.changes_rows:
            continue
        if not _is_rewrite(entry):
            commits.append(entry.version)
            continue
        if commits:
            pieces.append(Commits(versions=tuple(commits)))
            commits = []
        if max(_count_rows(entries, entry.version), _count_rows(entries, entry.version - 1)) > MOST_TOLD:
            pieces = [Reset(version=entry.version)]
        else:
            before = entry.version - 1 if entry.version > entries[0].version else None
            pieces.append(Rewrite(version=entry.version, before=before))
    return (*pieces, Commits(versions=tuple(commits))) if commits else tuple(pieces)


def find_first_named(entries: Sequence[LogEntry], name: str, upto: int) -> int | None:
    """The first version that was committed while a change log or a trigger was declared."""
    return next(
        (e.version for e in entries if e.version <= upto and e.metadata and name in e.metadata.published_to),
        None,
    )


def find_publishing_time(own: Sequence[LogEntry], now: datetime) -> datetime:
    """A time after that of all that the log has published, also if the clock went back.

    Readers that see only the rows know the order of two appends by it. `own` are the last commits of the
    log, back to one of ours: their times only grow.
    """
    last = max((e.committed_at for e in own if e.committed_at is not None), default=None)
    return now if last is None else max(now, last + timedelta(microseconds=1))


def _is_rewrite(entry: LogEntry) -> bool:
    return entry.version == 0 or (
        entry.metadata is not None and entry.metadata.operation is Operation.OVERWRITE
    )


def _count_rows(entries: Sequence[LogEntry], version: int) -> int:
    """The live rows of the table at a version, as the last commit up to it recorded them."""
    recorded = (e.metadata.rows for e in entries if e.version <= version and e.metadata)
    return max((rows for rows in list(recorded)[-1:] if rows >= 0), default=0)
