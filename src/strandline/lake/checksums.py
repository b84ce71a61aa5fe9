"""Compares files with the checksums that Hadoop writes beside them, before delta-rs or Arrow reads them.

Spark checks them by itself. delta-rs and Arrow do not, so a flipped byte would be a value like any other.
delta-rs only checks the sums inside deletion vectors. Object stores check what they store, and have no such
files.
"""

import struct
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.fs

from strandline.model.errors import OutsideError

from .log import AddedFile

CHECKED_BYTES = 128 << 20
"""At most this many bytes of Parquet are checked. Reading more twice would be felt by whoever waits for it.

`doctor --deep` reads everything.
"""
_sound: set[tuple[str, int, int]] = set()
"""Path, size and modification time of every file that was found sound. A process checks no file twice."""


def require_sound_files(uri: str, files: Iterable[AddedFile]) -> None:
    """Refuse files that a commit added to a table, if one does not contain the bytes that were written."""
    added = list(files)
    require_sound(uri, [file.path for file in added], sum(file.bytes for file in added))


def require_sound(uri: str, paths: Iterable[str], size: int) -> None:
    """Refuse files of a table, of this total size, if one does not contain the bytes that were written."""
    if size > CHECKED_BYTES or ("://" in uri and not uri.startswith("file:")):
        return
    root = (unquote(urlparse(uri).path) if uri.startswith("file:") else uri).rstrip("/")
    file_system = pyarrow.fs.LocalFileSystem()
    for path in paths:
        with suppress(FileNotFoundError):  # the reader reports it better
            if not _is_sound(file_system, f"{root}/{path}"):
                raise damaged(Path(root).name, path)


def _is_sound(file_system: pyarrow.fs.FileSystem, path: str) -> bool:
    status = Path(path).stat()
    key = (path, status.st_size, status.st_mtime_ns)
    if key not in _sound:
        sums = _find_sums(file_system, path)
        if sums is not None and sums != _add_up(file_system.open_input_stream(path).read(), sums[0]):
            return False
        _sound.add(key)
    return True


def damaged(dataset: str, path: str) -> OutsideError:
    return OutsideError(
        f"A file of `{dataset}` does not have the bytes that were written: {path}.",
        remedy="Run `strandline doctor --deep`: it finds every such file and says what to do.",
        slug="file-damaged",
    )


def differs(file_system: pyarrow.fs.FileSystem, path: str, data: bytes) -> bool:
    """Whether bytes differ from the checksums beside a file. False if there are none."""
    sums = _find_sums(file_system, path)
    return sums is not None and sums != _add_up(data, sums[0])


def _find_sums(file_system: pyarrow.fs.FileSystem, path: str) -> tuple[int, bytes] | None:
    """The step and a CRC32 for each step of a file's bytes."""
    folder, _, name = path.rpartition("/")
    text = b""
    with suppress(OSError):
        text = file_system.open_input_stream(f"{folder}/.{name}.crc").read()
    if len(text) < 8 or text[:4] != b"crc\0":
        return None
    return int(struct.unpack(">i", text[4:8])[0]), text[8:]


def _add_up(data: bytes, step: int) -> tuple[int, bytes]:
    sums = [zlib.crc32(data[start : start + step]) for start in range(0, len(data), step)]
    return step, struct.pack(f">{len(sums)}I", *sums)
