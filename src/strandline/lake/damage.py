"""What is wrong with a table's log and files.

It is found without Spark, and without opening the table: a damaged one does not open.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from .checksums import differs
from .files import TableFiles, list_stored, read_files
from .location import open_folder

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")
_MANY = 3
"""At most this many names are listed. The rest is counted."""


class Ailment(StrEnum):
    LOG = "log"
    """An entry is missing or unreadable: Delta does not open the table, or opens too old a version of it."""
    CHECKPOINT = "checkpoint"
    """A shortcut through the log is missing."""
    FILES = "files"
    """Data of the newest version is missing or damaged."""
    HISTORY = "history"
    """Data of earlier versions is missing, and a node has yet to read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    ailment: Ailment
    what: str


def find_damage(uri: str, since: int | None, *, deep: bool) -> tuple[Damage, ...]:
    """Everything that is wrong with a table.

    `since` is the first version that a node has yet to read. `deep` reads every byte.
    """
    log = tuple(_examine_log(uri))
    if any(d.ailment is Ailment.LOG for d in log):
        return log
    files = read_files(uri, -1 if since is None else since)
    return (*log, *_examine_files(uri, files, since), *(_read_all(uri, files) if deep else ()))


def _examine_log(uri: str) -> Iterator[Damage]:
    file_system, root = open_folder(uri)
    folder = f"{root}/_delta_log" if root else "_delta_log"
    infos = file_system.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
    names = {info.base_name for info in infos if info.is_file}
    entries = sorted(int(m[1]) for name in names if (m := _ENTRY.fullmatch(name)))
    checkpoints = {int(m[1] or m[2]) for name in names if (m := _CHECKPOINT.fullmatch(name))}
    if not entries:
        if names:
            yield Damage(ailment=Ailment.LOG, what="its log has no entry left")
        return
    missing = sorted(set(range(entries[0], entries[-1] + 1)) - set(entries))
    if missing:
        yield Damage(ailment=Ailment.LOG, what=f"entry {_listed(missing)} of its log is missing")
    if entries[0] and not any(version >= entries[0] - 1 for version in checkpoints):
        yield Damage(
            ailment=Ailment.LOG,
            what=f"its log begins with version {entries[0]}, and no checkpoint contains what was before",
        )
    newest = max((int(m[1]) for name in names if (m := _CHECKSUM.fullmatch(name))), default=-1)
    if newest > entries[-1]:
        yield Damage(
            ailment=Ailment.LOG,
            what=f"its log ends with version {entries[-1]}, and version {newest} existed",
        )
    for version in entries:
        if problem := _entry_problem(file_system, f"{folder}/{version:020}.json"):
            yield Damage(ailment=Ailment.LOG, what=f"entry {version} of its log {problem}")
    yield from _examine_pointer(file_system, folder, names, checkpoints)


def _entry_problem(file_system: pyarrow.fs.FileSystem, path: str) -> str:
    try:
        data = file_system.open_input_stream(path).read()
        lines = [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        return f"can't be read: {str(error).splitlines()[0]}"
    if not lines:
        return "is empty"
    return "does not have the bytes that were written" if differs(file_system, path, data) else ""


def _examine_pointer(
    file_system: pyarrow.fs.FileSystem, folder: str, names: set[str], checkpoints: set[int]
) -> Iterator[Damage]:
    if "_last_checkpoint" not in names:
        return
    try:
        version = int(
            json.loads(file_system.open_input_stream(f"{folder}/_last_checkpoint").read())["version"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        yield Damage(ailment=Ailment.CHECKPOINT, what="its `_last_checkpoint` can't be read")
        return
    if version not in checkpoints:
        yield Damage(
            ailment=Ailment.CHECKPOINT,
            what=f"its `_last_checkpoint` names the checkpoint of version {version}, which is gone",
        )


def _examine_files(uri: str, files: TableFiles, since: int | None) -> Iterator[Damage]:
    """Compare the folder's listing with the log: files must exist and have the size that was written."""
    stored = {file.path: file.bytes for file in list_stored(uri)}
    live = {file.path: file for file in files.live}
    vectors = {file.vector for file in files.live if file.vector}
    if missing := sorted((live.keys() | vectors) - stored.keys()):
        yield Damage(ailment=Ailment.FILES, what=f"file {_listed(missing)} is missing")
    for path in sorted(live.keys() & stored.keys()):
        if stored[path] != live[path].bytes:
            yield Damage(
                ailment=Ailment.FILES,
                what=f"file {path} has {stored[path]} bytes and should have {live[path].bytes}",
            )
    gone = sorted(files.needed - stored.keys() - live.keys() - vectors)
    if since is not None and gone:
        yield Damage(
            ailment=Ailment.HISTORY,
            what=f"file {_listed(gone)}, which versions from {since} on are read from, is missing",
        )


def _read_all(uri: str, files: TableFiles) -> Iterator[Damage]:
    """Read every byte of every live file: compare it with its checksum, if there is one, and decode it."""
    file_system, root = open_folder(uri)
    for file in files.live:
        for path in filter(None, (file.path, file.vector)):
            full = f"{root}/{path}" if root else path
            if file_system.get_file_info(full).is_file and (problem := _data_problem(file_system, full)):
                yield Damage(ailment=Ailment.FILES, what=f"file {path} {problem}")


def _data_problem(file_system: pyarrow.fs.FileSystem, path: str) -> str:
    try:
        if differs(file_system, path, file_system.open_input_stream(path).read()):
            return "does not have the bytes that were written"
        if path.endswith(".parquet"):
            with pq.ParquetFile(path, filesystem=file_system, page_checksum_verification=True) as data:
                for _ in data.iter_batches():
                    pass
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"can't be read: {str(error).splitlines()[0]}"
    return ""


def _listed(names: list[str] | list[int]) -> str:
    listed = ", ".join(str(name) for name in names[:_MANY])
    return listed if len(names) <= _MANY else f"{listed} and {len(names) - _MANY} more"
