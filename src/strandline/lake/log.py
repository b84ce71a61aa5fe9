"""A table's Delta log, read without Spark: who committed what."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

import pyarrow.fs

from strandline.model.commits import CommitMetadata, CommitRecord, CommitSummary
from strandline.model.metadata import find_metadata

from .location import open_folder

_COMMIT = re.compile(r"(\d{20})\.json$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    path: str
    rows: int
    bytes: int


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

    @property
    def changes_rows(self) -> bool:
        """Whether a reader of the table has anything to do after it."""
        return self.data_change and (self.metadata is None or self.metadata.operation.changes_rows)

    @property
    def wakes_readers(self) -> bool:
        """Whether a job that reads the table has anything to do after it: rows changed, or someone says a scope is wrong."""
        return self.changes_rows or (self.metadata is not None and bool(self.metadata.invalidations))

    def summary(self) -> CommitSummary:
        return CommitSummary(
            version=self.version,
            changes_rows=self.changes_rows,
            rows_added=sum(f.rows for f in self.added),
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


def list_versions(uri: str) -> list[int]:
    """The versions whose commit file is still there, ascending. Empty when there is no table."""
    file_system, path = open_folder(uri)
    selector = pyarrow.fs.FileSelector(f"{path}/_delta_log", allow_not_found=True)
    return sorted(
        int(m[1]) for info in file_system.get_file_info(selector) if (m := _COMMIT.search(info.path))
    )


def read_entries(uri: str, after: int) -> Iterator[LogEntry]:
    """The commits after a version, oldest first."""
    return (parse_entry(version, text) for version, text in read_texts(uri, after))


def read_texts(uri: str, after: int) -> Iterator[tuple[int, str]]:
    """The same as they are written: a JSON object a line."""
    file_system, path = open_folder(uri)
    for version in list_versions(uri):
        if version > after:
            with file_system.open_input_stream(f"{path}/_delta_log/{version:020}.json") as stream:
                yield version, stream.read().decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What a version is made of, by whoever wrote it."""

    files: int
    bytes: int


def find_sums(uri: str, version: int) -> Sums | None:
    """The sums that Spark writes beside a log entry. None where there are none, or none that can be read: they only check the log."""
    file_system, path = open_folder(uri)
    try:
        with file_system.open_input_stream(f"{path}/_delta_log/{version:020}.crc") as stream:
            told = json.loads(stream.read())
        return Sums(files=int(told["numFiles"]), bytes=int(told["tableSizeBytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def count_added(uri: str, after: int, upto: int) -> int:
    """Rows that commits in a range added, from the statistics of their files."""
    return sum(
        f.rows for e in read_entries(uri, after) if e.version <= upto and e.changes_rows for f in e.added
    )


def parse_entry(version: int, text: str) -> LogEntry:
    info: dict[str, object] = {}
    tokens: dict[str, int] = {}
    added: list[AddedFile] = []
    removed: set[str] = set()
    data_change = False
    table_id = None
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
            if not add.get("deletionVector"):
                stats = json.loads(add.get("stats") or "{}")
                added.append(
                    AddedFile(path=unquote(add["path"]), rows=stats.get("numRecords", 0), bytes=add["size"])
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
    )
