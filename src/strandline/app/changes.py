"""The changes of a published dataset: after a cursor, and as they come. Starts no Spark."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from strandline.lake.change_rows import (
    ChangeRow,
    LogPlace,
    LogReplacedError,
    find_place,
    look,
    read_after,
    read_told,
)
from strandline.lake.table import get_table
from strandline.model.condition_json import parse_condition
from strandline.model.cursors import LAST_POSITION, ChangeCursor, find_cursor
from strandline.model.errors import CallError
from strandline.model.node import Project
from strandline.model.publishing import CHANGES_SUFFIX
from strandline.publish.changes import Change as Change  # re-exported: `serve` knows `app` alone
from strandline.publish.filtered_changes import PublishedChange as PublishedChange
from strandline.publish.filtered_changes import RowFilter as RowFilter
from strandline.publish.filtered_changes import SeenChange as SeenChange
from strandline.publish.filtered_changes import make_filter

from .reading import Readable

AT_ONCE = 2_000
"""Changes that are read at once."""


class ChangesReplacedError(Exception):
    """The log began anew: what comes cannot be joined to what was read. A RESET says so too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """Some changes that came, in order."""

    changes: tuple[PublishedChange, ...]
    cursor: str
    """Everything up to here has been read once these changes have."""
    complete: bool
    """They end with a version of the dataset. Otherwise more changes of it follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    dataset: str
    changes: tuple[SeenChange, ...]
    next: str
    """The cursor after which the next page begins."""
    complete: bool
    """Nothing more was there."""


def find_published(project: Project) -> dict[str, str]:
    """By dataset that has a change log, as people type it: the name of the log."""
    return {
        name: f"{name}{CHANGES_SUFFIX}"
        for name in project.tables
        if (log := project.find(f"{name}{CHANGES_SUFFIX}")) and log.traits.publishes == project.tables[name]
    }


def require_published(project: Project, name: str) -> str:
    """The change log of a dataset. Raises CallError if it has none."""
    log = find_published(project).get(name)
    if log is None:
        raise _refuse(project, name)
    return log


class FollowedLog:
    """The change log of one dataset, as one reader follows it. Not for two threads at once."""

    def __init__(self, workspace: Readable, name: str) -> None:
        project = workspace.project
        log = require_published(project, name)
        self.name = name
        self.node = project.tables[name]
        self._uri = workspace.lake.table(log)
        self._table_uri = workspace.lake.table(self.node)
        self._seen = look(self._uri)
        place = find_place(self._uri, self.node)
        if place is None or place.covered < 0:
            raise CallError(
                f"The change log of `{name}` has never been built.",
                remedy="Run `strandline run` first.",
                slug="never-built",
            )
        self._place: LogPlace = place

    @property
    def version(self) -> int:
        """The version of the dataset up to which the log is complete."""
        return self._place.covered

    @property
    def end(self) -> ChangeCursor:
        """The cursor after everything that has been read."""
        return self._cursor(self._place, self._place.covered, LAST_POSITION)

    @property
    def start(self) -> ChangeCursor:
        """The cursor before the first change that can be read."""
        return self._cursor(self._place, self._place.reset_at, LAST_POSITION)

    @cached_property
    def _tag(self) -> str:
        return sha256(self.name.encode()).hexdigest()[:8]

    def find_columns(self) -> Mapping[str, str]:
        """The columns of the dataset with their types, as Delta spells them."""
        return dict(get_table(self._table_uri).columns)

    def make_filter(self, where: object) -> RowFilter:
        """`where` is a condition as JSON writes it. None: every row."""
        columns = self.find_columns()
        condition = parse_condition({} if where is None else where, columns)
        return make_filter(condition, columns)

    def parse_cursor(self, text: str) -> ChangeCursor:
        """Raises CallError if it is not a cursor of this log, or if it has expired."""
        cursor = find_cursor(text)
        if cursor is None:
            raise CallError(
                "`after` is not a cursor.",
                remedy="Pass a `ts_cursor` or `next` unchanged.",
                slug="bad-cursor",
            )
        if cursor.dataset != self._tag:
            raise CallError(
                f"`after` is a cursor of another dataset, not of `{self.name}`.",
                remedy="Pass the last `ts_cursor` that you have had of this dataset.",
                slug="cursor-of-another-dataset",
            )
        place = self._place
        if (cursor.log, cursor.began) != (place.table, place.began) or cursor > self.end:
            raise expired(self.name)
        return cursor

    def find_begin(self, after: str | None) -> ChangeCursor:
        """Where a reader begins who passes a cursor, or none."""
        return self.start if after is None else self.parse_cursor(after)

    def is_ahead(self, text: str) -> bool:
        """Whether a cursor is of what this reader has not read yet, because another process was faster."""
        cursor, end = find_cursor(text), self.end
        return cursor is not None and (cursor.dataset, cursor.log) == (end.dataset, end.log) and cursor > end

    def has_grown(self) -> bool:
        """Whether there may be something to read. It costs a look at a few files."""
        return look(self._uri) != self._seen

    def grow(self) -> Iterator[Grown]:
        """What came since the last time. Raises ChangesReplacedError if it cannot be joined to that."""
        seen = look(self._uri)
        if seen[0] != self._seen[0]:
            raise ChangesReplacedError
        try:
            for told in read_told(self._uri, self.node, self._place, AT_ONCE):
                if any(row.operation == Change.RESET for row in told.rows):
                    raise ChangesReplacedError
                changes = tuple(self._make(row, told.place) for row in told.rows)
                if told.complete:
                    self._place = told.place
                cursor = str(self.end) if told.complete else changes[-1].cursor
                yield Grown(changes=changes, cursor=cursor, complete=told.complete)
        except LogReplacedError as error:
            raise ChangesReplacedError from error
        self._seen = seen

    def read_after(self, cursor: ChangeCursor, most: int = AT_ONCE) -> Iterator[tuple[PublishedChange, ...]]:
        """The changes after a cursor, up to `end`. Raises ChangesReplacedError if files went meanwhile."""
        place = self._place
        try:
            for rows in read_after(self._uri, place, (cursor.version, cursor.position), most):
                yield tuple(self._make(row, place) for row in rows)
        except LogReplacedError as error:
            raise ChangesReplacedError from error

    def _make(self, row: ChangeRow, place: LogPlace) -> PublishedChange:
        return PublishedChange(
            cursor=str(self._cursor(place, row.version, row.position)),
            operation=Change(row.operation),
            key=row.key,
            timestamp=None if row.source_timestamp is None else str(row.source_timestamp),
            fields=row.fields,
            row=json.loads(row.data),
            before=None if row.before is None else json.loads(row.before),
            letters=len(row.data) + len(row.before or ""),
        )

    def _cursor(self, place: LogPlace, version: int, position: int) -> ChangeCursor:
        return ChangeCursor(
            began=place.began, version=version, position=position, dataset=self._tag, log=place.table
        )


def read_changes(workspace: Readable, name: str, after: str | None, where: object, limit: int) -> ChangesPage:
    """At most `limit` changes after a cursor. Without one: all that the log can tell."""
    log = FollowedLog(workspace, name)
    return read_page(log, log.find_begin(after), log.make_filter(where), limit)


def read_page(log: FollowedLog, begin: ChangeCursor, row_filter: RowFilter, limit: int) -> ChangesPage:
    """The same for a log that is followed. Raises CallError if the cursor expires meanwhile."""
    cursor, page, end = str(begin), list[SeenChange](), str(log.end)
    try:
        for changes in log.read_after(begin):
            for change in changes:
                if len(page) == limit:
                    return ChangesPage(dataset=log.name, changes=tuple(page), next=cursor, complete=False)
                seen, cursor = row_filter.see(change), change.cursor
                if seen is not None:
                    page.append(seen)
    except ChangesReplacedError as error:
        raise expired(log.name) from error
    return ChangesPage(dataset=log.name, changes=tuple(page), next=max(cursor, end), complete=True)


def expired(name: str) -> CallError:
    return CallError(
        f"The changes of `{name}` cannot be read after this cursor any more: it is too old, or its change log"
        " began anew.",
        remedy="Read the rows as they are now, and then the changes after that.",
        slug="cursor-expired",
    )


def _refuse(project: Project, name: str) -> CallError:
    if name not in project.readable:
        known = ", ".join(sorted(find_published(project))) or "none yet"
        return CallError(
            f"There is no dataset `{name}`.", remedy=f"Published: {known}.", slug="unknown-dataset"
        )
    return CallError(
        f"`{name}` has no change log.", remedy=f"Add `{name}` to `publish`.", slug="no-change-log"
    )
