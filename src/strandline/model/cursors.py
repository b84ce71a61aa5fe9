"""Cursors: places in the change log of a dataset, as text.

Cursors of one dataset order as text as the changes do, because every part has a fixed width.
"""

import re
from dataclasses import dataclass

LAST_POSITION = (1 << 32) - 1
"""The position after all changes of a version."""
_WIDTHS = (14, 12, 8)
_TEXT = re.compile(r"[0-9a-f]{50}")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ChangeCursor:
    """Everything up to this place has been read."""

    began: int
    """When the log told its last RESET, in microseconds since 1970. 0 if it has told none."""
    version: int
    """Of the dataset. -1: nothing has been read."""
    position: int
    """Among the changes of the version."""
    dataset: str = ""
    """Eight hexadecimal digits that name the dataset."""
    log: str = ""
    """Eight hexadecimal digits that name the table of the log, and the last time it was written anew."""

    def __str__(self) -> str:
        numbers = zip((self.began, self.version + 1, self.position), _WIDTHS, strict=True)
        return "".join(f"{number:0{width}x}" for number, width in numbers) + self.dataset + self.log


def find_cursor(text: str) -> ChangeCursor | None:
    """None if the text is not a cursor."""
    if not _TEXT.fullmatch(text):
        return None
    began, version, position, dataset, log = (
        text[start:end] for start, end in ((0, 14), (14, 26), (26, 34), (34, 42), (42, 50))
    )
    return ChangeCursor(
        began=int(began, 16),
        version=int(version, 16) - 1,
        position=int(position, 16),
        dataset=dataset,
        log=log,
    )
