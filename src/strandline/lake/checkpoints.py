"""The statistics of the files in a table's newest checkpoint, so that a long log need not be read whole."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from .location import open_folder
from .statistics import FileStatistics, make_statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    version: int
    statistics: Mapping[str, FileStatistics]
    """By path as the log has it: the files of this version."""


def find_checkpoint(uri: str, upto: int) -> Checkpoint | None:
    """The newest checkpoint of a table. None if there is none up to a version, or it cannot be read.

    It says nothing that the entries before it do not say, so whoever gets None reads these.
    """
    file_system, folder = open_folder(uri)
    try:
        with file_system.open_input_stream(f"{folder}/_delta_log/_last_checkpoint") as stream:
            last = json.loads(stream.read())
        version, parts = int(last["version"]), last.get("parts")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if version > upto or "v2Checkpoint" in last:
        return None
    of = [f".{part:010}.{parts:010}" for part in range(1, parts + 1)] if parts else [""]
    names = tuple(f"{version:020}.checkpoint{part}.parquet" for part in of)
    infos = file_system.get_file_info([f"{folder}/_delta_log/{name}" for name in names])
    stamps = tuple((info.size or 0, info.mtime_ns or 0) for info in infos)
    try:
        return _read_once(uri, version, names, stamps)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None


@lru_cache(maxsize=100)
def _read_once(
    uri: str, version: int, names: tuple[str, ...], _stamps: tuple[tuple[int, int], ...]
) -> Checkpoint:
    file_system, folder = open_folder(uri)
    statistics = {}
    for name in names:
        with pq.ParquetFile(f"{folder}/_delta_log/{name}", filesystem=file_system) as file:
            rows = file.read(columns=["add.path", "add.stats"])
        for add in rows.column("add").to_pylist():
            if add is not None and add["path"] is not None:
                statistics[add["path"]] = make_statistics(json.loads(add["stats"] or "{}"))
    return Checkpoint(version=version, statistics=statistics)
