"""The result of reading some files."""

from dataclasses import dataclass, field

from .survey import Piece
from .text import FileRefusedError


@dataclass(slots=True)
class Received:
    """For each file, by path: its number of rows and how far it was read, or why it is refused."""

    counts: dict[str, int] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)
    refused: dict[str, FileRefusedError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
