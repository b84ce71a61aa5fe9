"""One writer on a lake of plain files.

The lock is inside the JVM, because the JVM of a killed Python process may go on writing for seconds. A server
holds a second lock in Python, from before its Spark starts to its own end. Whoever takes one of the two looks
at the other one afterwards, so that of two processes at most one goes on.
"""

import fcntl
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from strandline.model.errors import OutsideError
from strandline.spark.session import is_started

from .location import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK_FILE = "_strandline.lock"
HOLDER_FILE = "_strandline.holder"
SERVER_FILE = "_strandline.server"
"""Locked by a server for as long as it lives."""

_PATIENCE = 8
"""Half seconds. The JVM of a process that was killed may live on for two or three seconds."""

_held: dict[str, Any] = {}
"""The JVM's gateway, the file and the lock, by folder. A lock ends with the JVM that took it."""
_served: dict[str, IO[bytes]] = {}
"""By folder: the file that this process has locked as a server. To close any other handle of it in this
process would end the lock."""


def await_lake(lake: Lake, waiting: Callable[[str], None] = lambda _: None) -> bool:
    """Check whether another process holds the lake before Spark is started for nothing.

    The lock itself is taken inside the JVM. Waits a moment for the holder, after passing its name to
    `waiting`. Returns True if it had to wait: an earlier plan is then out of date.
    """
    folder = lake.local
    if folder is None or is_started():
        return False
    for nth in range(_PATIENCE):
        if find_lock_holder(folder) is None:
            return nth > 0
        if nth == 0:
            waiting(read_holder(folder))
        time.sleep(0.5)
    if find_lock_holder(folder) is not None:
        raise _taken(folder)
    return True


def hold_lake(session: "SparkSession", lake: Lake, since: str) -> None:
    """Take the lake for this process, until its JVM ends. Otherwise the error says who holds it."""
    folder = lake.local
    gateway = session.sparkContext._gateway
    if folder is None or (str(folder) in _held and _held[str(folder)][0] is gateway):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        jvm = session.sparkContext._jvm
        assert jvm is not None
        file = jvm.java.io.RandomAccessFile(str(folder / LOCK_FILE), "rw")
        lock = file.getChannel().tryLock()
        for _ in range(_PATIENCE):
            if lock is not None:
                break
            time.sleep(0.5)
            lock = file.getChannel().tryLock()
        if lock is not None and find_server(folder) is not None:
            lock.release()
            lock = None
        if lock is not None and str(folder) not in _served:
            write_holder(folder, since)
    except OSError as error:
        raise unwritable(folder, error) from error
    except Exception as error:
        if "OverlappingFileLockException" in str(error):
            return
        raise unwritable(folder, error) from error
    if lock is None:
        raise _taken(folder)
    _held[str(folder)] = (gateway, file, lock)


@contextmanager
def held_lake(lake: Lake, since: str) -> Iterator[None]:
    """Keep others from writing the lake while the block lasts.

    It is the same lock, held by this process, for work that writes no table.
    """
    folder = lake.local
    if folder is None or str(folder) in _served or (is_started() and str(folder) in _held):
        yield
        return
    if not folder.is_dir():
        yield
        return
    with (folder / LOCK_FILE).open("a+b") as file:
        for nth in range(_PATIENCE + 1):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if nth == _PATIENCE:
                    raise _taken(folder) from error
                time.sleep(0.5)
        if find_server(folder) is not None:
            raise _taken(folder)
        write_holder(folder, since)
        yield


@contextmanager
def served_lake(lake: Lake, since: str) -> Iterator[None]:
    """Hold the lake for a server, whether its Spark runs or not. Otherwise the error says who holds it."""
    folder = lake.local
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / SERVER_FILE).open("a+b")
    except OSError as error:
        raise unwritable(folder, error) from error
    with file:
        for nth in range(_PATIENCE + 1):
            if _lock(file) and _find_holder(folder / LOCK_FILE) is None:
                break
            if nth == _PATIENCE:
                raise _taken(folder)
            time.sleep(0.5)
        _served[str(folder)] = file
        try:
            write_holder(folder, since)
            yield
        finally:
            (folder / HOLDER_FILE).unlink(missing_ok=True)
            del _served[str(folder)]


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def find_server(folder: Path) -> int | None:
    """The other process that serves the lake."""
    return None if str(folder) in _served else _find_holder(folder / SERVER_FILE)


def find_lock_holder(folder: Path) -> int | None:
    """The other process that writes the lake: one whose JVM holds its lock, or a server."""
    return _find_holder(folder / LOCK_FILE) or find_server(folder)


def _find_holder(file: Path) -> int | None:
    """The process that holds a lock.

    The lock is queried, not tried: trying would take it from a run that is just starting.
    """
    if sys.platform != "linux" or not file.exists():
        return None
    # struct flock: type, whence, start, length, pid.
    layout = "hhqqi"
    with file.open("rb") as lock:
        query = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(
            layout, fcntl.fcntl(lock, fcntl.F_GETLK, query)[: struct.calcsize(layout)]
        )
    return None if kind == fcntl.F_UNLCK else int(pid)


def write_holder(folder: Path, since: str, server: Mapping[str, str] | None = None) -> None:
    """Say who holds the lake, and of a server how it is reached. Only the owner may read it: it has a key."""
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    path = folder / HOLDER_FILE
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({**holder, **({"server": dict(server)} if server else {})}, file)
    os.replace(new, path)


def read_server(folder: Path) -> dict[str, str] | None:
    """What the server that holds the lake says about itself. None if there is none, or it is starting."""
    if find_server(folder) is None:
        return None
    try:
        server = json.loads((folder / HOLDER_FILE).read_text()).get("server")
    except (OSError, ValueError, AttributeError):
        return None
    return {str(name): str(value) for name, value in server.items()} if isinstance(server, dict) else None


def _taken(folder: Path) -> OutsideError:
    return OutsideError(
        f"The lake `{folder}` is being written by another process: {read_holder(folder)}.",
        remedy="Wait until it has ended, or stop it. A lake of plain files has one writer at a time.",
        slug="lake-held",
    )


def read_holder(folder: Path) -> str:
    """Who took the lake last, for people."""
    try:
        holder = json.loads((folder / HOLDER_FILE).read_text())
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, KeyError):
        return "a process that left no name"


def unwritable(folder: Path, error: Exception) -> OutsideError:
    """The error for a lake whose folder cannot be written."""
    return OutsideError(
        f"The lake `{folder}` cannot be written: {str(error).splitlines()[0]}",
        remedy="Check that the folder exists, that this user may write it, and that the disk has space.",
        slug="disk-full" if "No space left on device" in str(error) else "lake-unwritable",
    )
