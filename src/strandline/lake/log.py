"""A table's Delta log, read without Spark: who committed what."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from threading import Lock
from urllib.parse import unquote

import pyarrow.fs

from strandline.model.columns import DELETED
from strandline.model.commits import CommitMetadata, CommitRecord, CommitSummary
from strandline.model.metadata import find_metadata

from .location import open_folder
from .statistics import FileStatistics, make_statistics

_COMMIT = re.compile(r"(\d{20})\.json$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    path: str
    rows: int
    bytes: int
    partition: tuple[tuple[str, str | None], ...] = ()
    """The partition columns of a partitioned table, which the file may lack, and their values as text."""

    @property
    def live_rows(self) -> int:
        """Its rows, unless readers do not see its partition."""
        return 0 if (DELETED, "true") in self.partition else self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One version of a table."""

    version: int
    operation: str
    committed_at: datetime | None
    metadata: CommitMetadata | None
    tokens: dict[str, int]
    """`txn` actions: application -> version."""
    added: tuple[AddedFile, ...]
    """Files of new rows; a file that only got a deletion vector is not among them."""
    removes_rows: bool
    data_change: bool
    table_id: str | None
    """Set where the commit carries the table's metadata."""
    statistics: Mapping[str, FileStatistics] = field(default_factory=dict)
    """By path: what it says about the values in a file, also in one that only got a deletion vector."""

    @property
    def changes_rows(self) -> bool:
        """Whether a reader of the table has anything to do after it."""
        return self.data_change and (self.metadata is None or self.metadata.operation.changes_rows)

    @property
    def wakes_readers(self) -> bool:
        """Whether a job that reads the table has work after it: rows changed, or a scope was invalidated."""
        return self.changes_rows or (self.metadata is not None and bool(self.metadata.invalidations))

    def summary(self) -> CommitSummary:
        return CommitSummary(
            version=self.version,
            changes_rows=self.changes_rows,
            rows_added=sum(f.live_rows for f in self.added),
            bytes_added=sum(f.bytes for f in self.added),
            metadata=self.metadata,
            operation=self.operation,
            committed_at=self.committed_at,
        )

    def record(self, table_id: str) -> CommitRecord | None:
        """The commit as the catalog keeps it, if it is ours."""
        if self.metadata is None:
            return None
        return CommitRecord(
            metadata=self.metadata,
            table_id=table_id,
            version=self.version,
            committed_at=self.committed_at or datetime.fromtimestamp(0, UTC),
            bytes_added=sum(f.bytes for f in self.added),
        )


Stamp = tuple[int, int]
"""Size and time of change of a log entry's file: a table that was deleted and made again has other ones."""


class Log:
    """A table's log as this process knows it.

    The log is listed once. After that, only entries that follow the last known one are looked for. An entry
    never changes, so it is parsed once.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._stamps: dict[int, Stamp] = {}
        self._lock = Lock()
        self.listed = 0
        """How often the log was listed. It grows when the table was deleted, or made again."""

    def versions(self) -> list[int]:
        """The versions whose entry is still there, ascending. Empty when there is no table."""
        return [version for version, _ in self._known()]

    def newest(self) -> tuple[int, int]:
        """How often the log was listed, and its last version (-1: none). Differs whenever the table does."""
        with self._lock:
            self._look()
            return self.listed, max(self._stamps, default=-1)

    def entries(self, after: int) -> Iterator[LogEntry]:
        """The commits after a version, oldest first."""
        for version, stamp in self._known():
            if version > after:
                yield _parse_once(self._uri, version, stamp)

    def newest_first(self, upto: int) -> Iterator[LogEntry]:
        """The commits up to a version, newest first."""
        for version, stamp in reversed(self._known()):
            if version <= upto:
                yield _parse_once(self._uri, version, stamp)

    def _known(self) -> list[tuple[int, Stamp]]:
        with self._lock:
            self._look()
            return sorted(self._stamps.items())

    def _look(self) -> None:
        """Bring the known versions up to date."""
        if not self._stamps:
            if not self.listed or self.may_exist():
                self._list()
            return
        first, last = min(self._stamps), max(self._stamps)
        stamps = self._find_stamps(first, last, last + 1)
        if any(stamps.get(version) != self._stamps[version] for version in (first, last)):
            self._list()
            return
        following = last + 1
        while (stamp := stamps.get(following)) is not None:
            self._stamps[following] = stamp
            following += 1
            stamps = self._find_stamps(following)

    def may_exist(self) -> bool:
        """Whether there may be a table where there was none.

        An object store has no folder that could be missing.
        """
        file_system, path = open_folder(self._uri)
        is_local = isinstance(file_system, pyarrow.fs.LocalFileSystem)
        return (
            not is_local
            or file_system.get_file_info(f"{path}/_delta_log").type is not pyarrow.fs.FileType.NotFound
        )

    def _list(self) -> None:
        self.listed += 1
        infos = list_log(self._uri)
        self._stamps = {int(m[1]): _stamp(info) for info in infos if (m := _COMMIT.search(info.path))}
        known = self._stamps.keys()
        if not known:
            return
        first, last = min(known), max(known)
        # A listing may lack an entry that was written while it ran, and have a later one. Object stores may
        # report times more exactly in a listing than for one file, and `_look` asks for single files.
        missing = set(range(first, last)) - known
        self._stamps |= self._find_stamps(first, last, *missing)

    def _find_stamps(self, *versions: int) -> dict[int, Stamp]:
        file_system, path = open_folder(self._uri)
        infos = file_system.get_file_info([_entry_path(path, version) for version in versions])
        return {v: _stamp(info) for v, info in zip(versions, infos, strict=True) if info.is_file}


def list_log(uri: str) -> list[pyarrow.fs.FileInfo]:
    """The files of a table's log folder, none when there is no table."""
    file_system, path = open_folder(uri)
    selector = pyarrow.fs.FileSelector(f"{path}/_delta_log", allow_not_found=True)
    return list(file_system.get_file_info(selector))


def _stamp(info: pyarrow.fs.FileInfo) -> Stamp:
    return info.size or 0, info.mtime_ns or 0


def _entry_path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020}.json"


@lru_cache(maxsize=1_000)
def find_log(uri: str) -> Log:
    """The log of the table at an address: one object per process."""
    return Log(uri)


@lru_cache(maxsize=20_000)
def _parse_once(uri: str, version: int, _stamp: Stamp) -> LogEntry:
    return parse_entry(version, _read_text(uri, version))


def _read_text(uri: str, version: int) -> str:
    file_system, path = open_folder(uri)
    with file_system.open_input_stream(_entry_path(path, version)) as stream:
        return str(stream.read().decode())


def list_versions(uri: str) -> list[int]:
    """The versions whose commit file is still there, ascending. Empty when there is no table."""
    return find_log(uri).versions()


def read_entries(uri: str, after: int) -> Iterator[LogEntry]:
    """The commits after a version, oldest first."""
    return find_log(uri).entries(after)


def read_entries_since(uri: str, after: int, upto: int, begins: Callable[[LogEntry], bool]) -> list[LogEntry]:
    """The commits after one version, up to another, and those before them back to one that `begins` accepts.

    All that are there if it accepts none. So a long log costs no more than a short one.
    """
    log, before = find_log(uri), list[LogEntry]()
    for entry in log.newest_first(min(after, upto)):
        before.append(entry)
        if begins(entry):
            break
    return [*reversed(before), *(e for e in log.entries(after) if e.version <= upto)]


def read_newest_entries(uri: str, begins: Callable[[LogEntry], bool]) -> list[LogEntry]:
    """The last commits, back to one that `begins` accepts."""
    _, newest = find_log(uri).newest()
    return read_entries_since(uri, newest, newest, begins)


def find_complete(uri: str, version: int) -> int:
    """The last version, up to this one, that leaves nothing to a later batch."""
    complete = version
    for entry in find_log(uri).newest_first(version):
        ours = entry.metadata is not None and not entry.metadata.operation.is_bare
        if ours and entry.metadata is not None and not entry.metadata.waiting:
            return complete
        if ours:
            complete = entry.version - 1
    return version


def read_texts(uri: str, after: int) -> Iterator[tuple[int, str]]:
    """The same as they are written: a JSON object a line."""
    for version in list_versions(uri):
        if version > after:
            yield version, _read_text(uri, version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What a version is made of, by whoever wrote it."""

    files: int
    bytes: int


def find_sums(uri: str, version: int) -> Sums | None:
    """The sums that Spark writes beside a log entry. None if there are none, or they cannot be read.

    They only check the log.
    """
    file_system, path = open_folder(uri)
    try:
        with file_system.open_input_stream(f"{path}/_delta_log/{version:020}.crc") as stream:
            sums = json.loads(stream.read())
        return Sums(files=int(sums["numFiles"]), bytes=int(sums["tableSizeBytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def count_added(uri: str, after: int, upto: int) -> int:
    """Rows that commits in a range added, from the statistics of their files."""
    return sum(
        f.live_rows for e in read_entries(uri, after) if e.version <= upto and e.changes_rows for f in e.added
    )


def parse_entry(version: int, text: str) -> LogEntry:
    info: dict[str, object] = {}
    tokens: dict[str, int] = {}
    added: list[AddedFile] = []
    removed: set[str] = set()
    data_change = False
    table_id = None
    statistics: dict[str, FileStatistics] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        action = json.loads(line)
        if commit_info := action.get("commitInfo"):
            info = commit_info
        elif txn := action.get("txn"):
            tokens[txn["appId"]] = txn["version"]
        elif add := action.get("add"):
            data_change |= add.get("dataChange", True)
            path, stats = unquote(add["path"]), json.loads(add.get("stats") or "{}")
            statistics[path] = make_statistics(stats)
            if not add.get("deletionVector"):
                added.append(
                    AddedFile(
                        path=path,
                        rows=stats.get("numRecords", 0),
                        bytes=add["size"],
                        partition=tuple(sorted((add.get("partitionValues") or {}).items())),
                    )
                )
        elif remove := action.get("remove"):
            data_change |= remove.get("dataChange", True)
            removed.add(unquote(remove["path"]))
        elif meta := action.get("metaData"):
            table_id = meta["id"]
    millis = info.get("inCommitTimestamp") or info.get("timestamp")
    return LogEntry(
        version=version,
        operation=str(info.get("operation", "")),
        committed_at=datetime.fromtimestamp(int(str(millis)) / 1000, UTC) if millis else None,
        metadata=find_metadata(str(info["userMetadata"]) if info.get("userMetadata") else None),
        tokens=tokens,
        added=tuple(added),
        removes_rows=bool(removed),
        data_change=data_change,
        table_id=table_id,
        statistics=statistics,
    )
