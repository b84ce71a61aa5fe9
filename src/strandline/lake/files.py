"""Which files a table's versions consist of, by its log alone, and which files in its folder none needs.

Uses no Spark. Delta's VACUUM uses the clock, and tombstones that it forgets after a week, so it cannot keep
what a cursor has yet to read. This uses versions: the log is never cut, and it names every file of every
version and of its change feed.
"""

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow.fs

from .location import open_folder
from .log import read_texts
from .statistics import NOTHING_KNOWN, FileStatistics, make_statistics

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85, _B85)
"""Delta writes a vector's id in Z85. Python reads the same code with another alphabet."""
_ID_LENGTH = 20
_UNKNOWN = datetime.max.replace(tzinfo=UTC)
"""The modification time of a file whose storage does not report one: never long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file that the newest version reads."""

    path: str
    bytes: int
    rows: int
    """All rows in it. Its deletion vector hides `deleted` of them."""
    deleted: int = 0
    vector: str = ""
    """The file of its deletion vector, if it has its own."""
    partition: tuple[tuple[str, str | None], ...] = ()
    """The columns by which the table is partitioned, with the values of this file's rows."""
    statistics: FileStatistics = NOTHING_KNOWN
    sorted_by: tuple[str, ...] = ()
    """The columns by which the commit that wrote it had sorted all rows of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """What a table's log says about files."""

    live: tuple[LiveFile, ...]
    needed: frozenset[str]
    """Every path that a version from the requested one on consists of, or that its changes are read from."""
    named: frozenset[str]
    """Every path that any version ever named."""
    complete: bool
    """Whether the log reaches back to version 0. Otherwise `needed` may lack some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in the table's folder."""

    path: str
    bytes: int
    modified_at: datetime


def read_files(uri: str, since: int) -> TableFiles:
    """Replay the log once: the files of its newest version, and those that versions from `since` on need."""
    live: dict[tuple[str, str], LiveFile] = {}
    needed: set[str] = set()
    named: set[str] = set()
    sorted_by: dict[str, tuple[str, ...]] = {}
    versions: list[int] = []
    for version, text in read_texts(uri, -1):
        if version > since and not needed:
            needed = _paths(live.values())
        versions.append(version)
        sorting: tuple[str, ...] = ()
        for kind, action in _file_actions(text):
            if kind == "commitInfo":
                sorting = _find_sorting(action)
                continue
            file = _file(action)
            if kind == "add" and sorting:
                sorted_by[file.path] = sorting
            named |= _paths([file])
            if version > since:
                needed |= _paths([file])
            # The log lists a file with its next deletion vector as another entry, in any order within a
            # commit.
            key = (file.path, _vector_id(action))
            if kind == "add":
                live[key] = file
            elif kind == "remove":
                live.pop(key, None)
    files = tuple(replace(file, sorted_by=sorted_by.get(file.path, ())) for file in live.values())
    return TableFiles(
        live=files,
        needed=frozenset(needed | _paths(files)),
        named=frozenset(named),
        complete=versions[:1] == [0],
    )


def _paths(files: Iterable[LiveFile]) -> set[str]:
    return {path for file in files for path in (file.path, file.vector) if path}


def _file_actions(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line in text.split("\n"):
        if line.strip():
            for kind, action in json.loads(line).items():
                if kind in ("commitInfo", "add", "remove", "cdc"):
                    yield kind, action


def _find_sorting(info: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns by which Delta sorted what a commit rewrote. The log says so before it names files."""
    text = (info.get("operationParameters") or {}).get("zOrderBy") or "[]"
    return tuple(json.loads(text))


def _file(action: Mapping[str, Any]) -> LiveFile:
    vector = action.get("deletionVector") or {}
    stats = json.loads(action.get("stats") or "{}")
    return LiveFile(
        path=unquote(action["path"]),
        bytes=action.get("size") or 0,
        rows=stats.get("numRecords", 0),
        deleted=vector.get("cardinality", 0),
        vector=_vector_path(vector),
        partition=tuple(sorted((action.get("partitionValues") or {}).items())),
        statistics=make_statistics(stats),
    )


def _vector_id(action: Mapping[str, Any]) -> str:
    vector = action.get("deletionVector")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def _vector_path(vector: Mapping[str, Any]) -> str:
    """The path of a deletion vector inside the table's folder. Empty if it is in the log, or elsewhere."""
    if vector.get("storageType") != "u":
        return ""
    text = vector["pathOrInlineDv"]
    prefix, coded = text[:-_ID_LENGTH], text[-_ID_LENGTH:]
    name = f"deletion_vector_{uuid.UUID(bytes=base64.b85decode(coded.translate(_FROM_Z85)))}.bin"
    return f"{prefix}/{name}" if prefix else name


def list_stored(uri: str) -> tuple[StoredFile, ...]:
    """The data files, deletion vectors and change files in a table's folder.

    Its log and Spark's hidden files are left out.
    """
    file_system, root = open_folder(uri)
    selector = pyarrow.fs.FileSelector(root, allow_not_found=True, recursive=True)
    files = []
    for info in file_system.get_file_info(selector):
        path = info.path.removeprefix(f"{root}/") if root else info.path
        if info.is_file and not _is_hidden(path):
            files.append(StoredFile(path=path, bytes=info.size or 0, modified_at=info.mtime or _UNKNOWN))
    return tuple(sorted(files, key=lambda file: file.path))


def _is_hidden(path: str) -> bool:
    """As Delta sees it: names with a leading dot or underscore.

    Its own folder of changes is an exception, and so are partitions, whose columns may begin with one.
    """
    first, *more = path.split("/")
    is_data = first == "_change_data" or "=" in first
    return (first.startswith(("_", ".")) and not is_data) or any(part.startswith(".") for part in more)


def find_dead(
    files: TableFiles, stored: Iterable[StoredFile], untouched_since: datetime
) -> tuple[StoredFile, ...]:
    """The files that may be removed, unless somebody may still be writing them.

    These are files that no kept version needs, and files that no version ever named.
    """
    return tuple(
        file
        for file in stored
        if file.path not in files.needed and (file.path in files.named or file.modified_at < untouched_since)
    )


def remove_files(uri: str, files: Iterable[StoredFile]) -> None:
    """Remove files, and the checksums that Hadoop wrote beside them, from a table's folder.

    A file that does not exist is not an error.
    """
    file_system, root = open_folder(uri)
    for file in files:
        path = f"{root}/{file.path}" if root else file.path
        folder, _, name = path.rpartition("/")
        for target in (path, f"{folder}/.{name}.crc" if folder else f".{name}.crc"):
            with suppress(FileNotFoundError):
                file_system.delete_file(target)
