"""The inbox of an HTTP source: what was posted, safe on disk before the poster is told so. Starts no Spark.

- `<name>.post` waits to be received. The name is a hash of the post's key.
- `received/<day>/<name>.post` was received on that day. It is kept for a week, so that a key that is posted
  again is recognised.
- `writing/` has what is being written now, or was when a process died.

A file is one line of JSON about the post, then the body as it came. A post is received because its file is in
the inbox, and it gets there by one rename.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from strandline.model.errors import ConflictError
from strandline.model.files import Content, FileSeen

REMEMBERED = timedelta(days=7)
"""A key is remembered for at least this long after its post was received."""
_ENDING = ".post"
_RECEIVED, _WRITING, _LOCK = "received", "writing", "lock"
_ALL_REMEMBERED = "all-remembered"
_ABANDONED = timedelta(days=1)
"""What has been written for this long belongs to a process that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line of a file: what is known of the post beside its body."""

    key: str
    chosen: bool
    """The poster chose the key. Others are made here and never repeat."""
    content: Content
    messages: int
    first_place: int
    """The place of its first message. 0 if it has none."""
    digest: str
    """Of the body."""
    posted_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a post."""

    head: Head
    """Of the post that was kept: this one, or the earlier one with the same key and body."""
    duplicate: bool


class KeyTakenError(ConflictError):
    """A key was posted before, with another body."""


def keep(inbox: Path, head: Head, body: bytes, at: datetime) -> Kept:
    """Keep a post, unless its key is remembered. It is on disk, and stays there, when this returns.

    Two posts with one key at once: the lock lets one of them be first.
    """
    _make_folders(inbox)
    name = _name(head.key)
    written = _write(inbox / _WRITING, head, body)
    try:
        with _locked(inbox):
            earlier = _find(inbox, name, at)
            if earlier is None:
                written.rename(inbox / name)
            # Also for a duplicate: whoever was first may not have come that far.
            _sync(inbox)
    finally:
        written.unlink(missing_ok=True)
    if earlier is None:
        return Kept(head=head, duplicate=False)
    if (earlier.content, earlier.digest) != (head.content, head.digest):
        raise KeyTakenError(
            f"The key `{head.key}` was posted before, with another body.",
            remedy="Post other messages under a key of their own. To repeat a post, send the same bytes.",
            slug="idempotency-key-taken",
        )
    return Kept(head=earlier, duplicate=True)


def is_waiting(inbox: Path, key: str) -> bool:
    """Whether the post with this key was not received yet."""
    return (inbox / _name(key)).exists()


def make_key(at: datetime) -> str:
    """A key for a post that has none. Such keys sort by time and never repeat."""
    chance = uuid.uuid4().hex  # noqa: TID251 - nothing tells two posts without a key from each other
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{chance}"


def list_inbox(inbox: Path, *, again: bool = False) -> tuple[FileSeen, ...]:
    """What waits to be received. No file is opened.

    `again`: the source's table is gone, so what is still kept is received again.
    """
    seen = [_seen(inbox, entry) for entry in _scan(inbox)]
    if again:
        seen += [_seen(inbox, entry) for day in _days(inbox) for entry in _scan(inbox / _RECEIVED / day)]
    return tuple(sorted((file for file in seen if file), key=lambda file: file.path))


def locate(inbox: Path, path: str) -> Path:
    """The file of a listed path."""
    return inbox.parent.parent / path


def open_post(file: Path) -> tuple[Head, bytes]:
    """A post that was kept. Raises ValueError if the file is not what was written."""
    with file.open("rb") as stream:
        head = _read_head(stream.readline())
        body = stream.read()
    if hashlib.sha256(body).hexdigest() != head.digest:
        raise ValueError("the body is not what was posted")
    return head, body


def put_away(inbox: Path, files: Iterable[str], at: datetime) -> None:
    """Move what was received out of the way, and remove what was received more than a week ago.

    It may only be called once the commit that holds the messages is recorded. A file that comes back after
    the machine lost its power is found to be received by its task.
    """
    if not inbox.exists():
        return
    with _locked(inbox):
        day = inbox / _RECEIVED / at.astimezone(UTC).date().isoformat()
        day.mkdir(parents=True, exist_ok=True)
        for path in files:
            file = locate(inbox, path)
            with suppress(FileNotFoundError):
                file.rename(day / file.name)
        _clean(inbox, at)


def count_forgettable(inbox: Path, at: datetime) -> int:
    """The number of posts that `clean` would remove."""
    return sum(1 for day in _forgettable(inbox, at) for _ in _scan(inbox / _RECEIVED / day))


def clean(inbox: Path, at: datetime) -> int:
    """Remove what was received more than a week ago, and what processes that died left.

    Returns the number of posts that were removed.
    """
    if not inbox.exists():
        return 0
    with _locked(inbox):
        removed = count_forgettable(inbox, at)
        _clean(inbox, at)
    return removed


def _clean(inbox: Path, at: datetime) -> None:
    for day in _forgettable(inbox, at):
        (inbox / _ALL_REMEMBERED).unlink(missing_ok=True)
        shutil.rmtree(inbox / _RECEIVED / day, ignore_errors=True)
    for entry in _scan(inbox / _WRITING):
        with suppress(FileNotFoundError):
            if entry.stat().st_mtime < (at - _ABANDONED).timestamp():
                Path(entry.path).unlink()


def _forgettable(inbox: Path, at: datetime) -> list[str]:
    return [day for day in _days(inbox) if not _is_remembered(day, at)]


def begin(inbox: Path) -> None:
    """Note that the source's table is empty: whatever it will have received is remembered here."""
    _make_folders(inbox)
    (inbox / _ALL_REMEMBERED).touch()


def remembers_all(inbox: Path) -> bool:
    """Whether no key of the source's table was ever forgotten."""
    return (inbox / _ALL_REMEMBERED).exists()


def _name(key: str) -> str:
    """A safe file name for any key. Names that differ in case alone are one on some disks."""
    return f"{hashlib.sha256(key.encode()).hexdigest()}{_ENDING}"


def _shown(inbox: Path) -> str:
    """The beginning of the paths of an inbox, as plans and commits show them."""
    return f"{inbox.parent.name}/{inbox.name}/"


def _seen(inbox: Path, entry: "os.DirEntry[str]") -> FileSeen | None:
    try:
        status = entry.stat()
    except FileNotFoundError:  # put away since it was listed
        return None
    path = _shown(inbox) + Path(entry.path).relative_to(inbox).as_posix()
    return FileSeen(path=path, size=status.st_size, modified_ns=status.st_mtime_ns)


def _scan(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """The posts in a folder. None if it does not exist."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (entry for entry in entries if entry.name.endswith(_ENDING))


def _days(inbox: Path) -> list[str]:
    try:
        return sorted(day.name for day in (inbox / _RECEIVED).iterdir())
    except FileNotFoundError:
        return []


def _is_remembered(day: str, at: datetime) -> bool:
    """A day's posts are remembered until even the last of them is a week old."""
    try:
        return at.astimezone(UTC).date() - date.fromisoformat(day) <= REMEMBERED
    except ValueError:
        return True


def _find(inbox: Path, name: str, at: datetime) -> Head | None:
    """The post with this name that waits or is remembered."""
    days = [inbox / _RECEIVED / day for day in _days(inbox) if _is_remembered(day, at)]
    for folder in (inbox, *reversed(days)):
        with suppress(FileNotFoundError), (folder / name).open("rb") as stream:
            return _read_head(stream.readline())
    return None


def _read_head(line: bytes) -> Head:
    try:
        value = json.loads(line)
        return Head(**{**value, "content": Content(value["content"])})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError("its first line does not say what was posted") from error


def _write(folder: Path, head: Head, body: bytes) -> Path:
    """A new file in a folder, on disk when this returns."""
    descriptor, path = tempfile.mkstemp(suffix=_ENDING, dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, 0o644)  # as Spark writes the tables: whoever runs the project may read it
            stream.write(json.dumps(asdict(head)).encode() + b"\n")
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise
    return Path(path)


def _make_folders(inbox: Path) -> None:
    if (inbox / _WRITING).is_dir():
        return
    (inbox / _WRITING).mkdir(parents=True, exist_ok=True)
    for folder in (inbox, inbox.parent, inbox.parent.parent, inbox.parent.parent.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(inbox: Path) -> Iterator[None]:
    """Nobody else adds to an inbox or moves its files, in this process or another, while the block lasts."""
    with (inbox / _LOCK).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
