"""The files of a source: the listing, and how far each file has been read."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """How far a file of a source has been read."""

    path: str
    revision: int
    bytes: int
    """Bytes read so far."""
    rows: int
    """Lines or rows counted so far (the next place is rows + 1)."""
    digest: str
    """The digest of the bytes read so far."""
    size: int
    modified_ns: int
    """Size and modification time at the last survey. A file with the same pair is not opened again."""
    seen_unchanged: int = 0
    """The number of consecutive runs in which an unfinished last line was unchanged."""
    unfinished: int = 0
    """1 while the last line lacks its newline."""
    same_as: str = ""
    """The other file with the same content, if that one was read before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A file as it is listed now."""

    path: str
    size: int
    modified_ns: int


class Content(StrEnum):
    """How a posted body contains its messages."""

    JSON = "json"
    """One message, or an array of messages."""
    LINES = "ndjson"
