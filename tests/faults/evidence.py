"""What laws are judged by: what can be seen of a world from outside at one moment. Each part is read once."""

import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strandline.catalog import read_view
from strandline.lake.log import LogEntry, read_entries
from strandline.lake.table import get_table
from strandline.model.plan import Cursor

from .plain_work import live, place_of
from .table_log import Row

if TYPE_CHECKING:
    from .kinds.kind import Stream
    from .world import World

Place = tuple[Any, ...]
"""File, revision and line."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


def require(holds: bool, law: str, *shown: object) -> None:
    if not holds:
        raise BrokenLawError(f"{law}: {' '.join(map(repr, shown))}")


class Evidence:
    """Rows are never changed by whoever reads them here."""

    def __init__(self, world: "World", *, frozen: Collection[str] | None = None) -> None:
        """`frozen`: the nodes that are frozen once all other work has drained. None: work may still wait."""
        self.world = world
        self.at_rest = frozen is not None
        self.frozen = frozen or ()
        self.nodes = read_view(world.catalog).nodes
        self.rows = functools.cache(self._rows)
        """All rows of a table, at a version or now."""
        self.entries = functools.cache(self._entries)
        """The commits of a table."""
        self.lines = functools.cache(self._lines)
        """By place: every line that was sent to a stream."""

    def live(self, name: str) -> list[Row]:
        """What a reader sees of a table."""
        return live(self.rows(name))

    def by_place(self, name: str, law: str) -> dict[Place, Row]:
        """The rows of a table that has each received line at most once."""
        rows_by_place: dict[Place, Row] = {}
        for row in self.rows(name):
            place = place_of(row)
            require(place not in rows_by_place, f"{law} {name}: nothing twice", place)
            rows_by_place[place] = row
        return rows_by_place

    def inputs(self, name: str) -> Mapping[str, list[Row]] | None:
        """The inputs at the versions that the last commit which computed something names.

        Later versions are taken where the catalog says that the table equals what they give.
        None if there is no such commit, if an input is another table now, or if what the commit read was
        cleaned away and the catalog that knew a later version is lost.
        """
        computed = self.last_computed(name)
        if computed is None or computed.metadata is None:
            return None
        cursors, record = computed.metadata.inputs, self.nodes.get(name)
        if record and all(reaches(record.cursors.get(d), cursor) for d, cursor in cursors.items()):
            cursors = {dataset: record.cursors[dataset] for dataset in cursors}
        if any(cursor.version < self.readable_from(dataset) for dataset, cursor in cursors.items()):
            return None
        if any(cursor.table_id != self.table_id(dataset) for dataset, cursor in cursors.items()):
            return None
        return {dataset: self.rows(dataset, cursor.version) for dataset, cursor in cursors.items()}

    def last_computed(self, name: str) -> LogEntry | None:
        """The last commit that computed something."""
        computed = (e for e in reversed(self.entries(name)) if e.metadata and e.metadata.inputs)
        return next(computed, None)

    def as_of(self, name: str) -> str:
        """The `as_of` of a table that was computed: the catalog knows of a later one, unless it is older."""
        computed, record = self.last_computed(name), self.nodes.get(name)
        assert computed is not None
        assert computed.metadata is not None
        known = record is not None and record.table_id == self.table_id(name)
        if record is not None and known and record.table_version >= computed.version and record.as_of:
            return record.as_of
        return computed.metadata.as_of

    def readable_from(self, name: str) -> int:
        """From which version on the table says that it can be read."""
        return max((e.metadata.readable_from for e in self.entries(name) if e.metadata), default=0)

    def table_id(self, name: str) -> str:
        return get_table(self.world.lake.table(name)).id

    def _rows(self, name: str, version: int | None = None) -> list[Row]:
        try:
            return self.world.rows(name, version)
        except FileNotFoundError as error:
            if version is None:
                raise
            raise BrokenLawError(
                f"L13 a version that the table says can be read can be read: {name} {version}"
            ) from error

    def _entries(self, name: str) -> list[LogEntry]:
        return list(read_entries(self.world.lake.table(name), -1))

    def _lines(self, stream: "Stream") -> dict[Place, str]:
        lines = sent(self.world.folder / stream.folder)
        if not stream.posted:
            return lines
        return {(Path(name).stem, 1, number): text for (name, _, number), text in lines.items()}


def sent(folder: Path) -> dict[Place, str]:
    """Every line of a source's files."""
    return {
        (f"{folder.name}/{file.name}", 0, number): text
        for file in sorted(folder.glob("*.jsonl"))
        for number, text in enumerate(file.read_text().splitlines(), 1)
    }


def reaches(cursor: Cursor | None, other: Cursor) -> bool:
    return cursor is not None and cursor.table_id == other.table_id and cursor.version >= other.version


def only(row: Row, columns: Iterable[str]) -> Row:
    return {c: row[c] for c in columns}
