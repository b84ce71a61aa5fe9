"""The files of a source: as they are listed, and how far each has been read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """How far a file of a source has been read."""

    path: str
    revision: int
    bytes: int
    """Bytes taken so far."""
    rows: int
    """Lines or rows counted so far (the next place is rows + 1)."""
    digest: str
    """Of the bytes taken so far."""
    size: int
    modified_ns: int
    """Size and modification time when last looked at: a file that shows the same pair is not opened again."""
    seen_unchanged: int = 0
    """In how many runs in a row an unfinished last line stood unchanged."""
    unfinished: int = 0
    """1 while the last line waits for its newline."""
    same_as: str = ""
    """Set when the content was already read under this other name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A file as listed now."""

    path: str
    size: int
    modified_ns: int
