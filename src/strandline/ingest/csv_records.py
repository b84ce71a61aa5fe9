"""CSV: where one record ends and the next begins.

Only this module decides it; Spark splits a record into fields.
"""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from strandline.model.project import FileSource

from .text import decode_line

LONGEST_QUOTED = 1 << 17
"""A quoted field must end within this many characters of further lines, or it is not taken as one.

Python's csv has the same limit.
"""


@dataclass(frozen=True, slots=True)
class Record:
    text: str
    start: int
    """Where it begins, in bytes from the start of the piece."""
    sound: bool
    """False for bytes that are not text and for a quote that nothing closes.

    Such a record is kept as it came.
    """
    waits: bool = False
    """The record has not ended yet: it is the last of a piece, and not part of it."""


class Dialect:
    """How records are written, according to the options of a source."""

    def __init__(self, source: FileSource) -> None:
        options = {key.lower(): value for key, value in source.options.items()}
        self.separator = (options.get("sep") or options.get("delimiter") or ",").replace("\\t", "\t")
        self.quote = options.get("quote", '"')[:1]
        self.escape = options.get("escape", '"')[:1]
        self.comment = options.get("comment", "")[:1]
        self.header = options.get("header", "true").lower() != "false"
        self._skips_blanks = options.get("ignoreleadingwhitespace", "false").lower() == "true"
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        inside = (
            f"[^{quote}]|{quote}{quote}"
            if self.escape in ("", self.quote)
            else rf"[^{quote}{escape}]|{escape}."
        )
        self._closing = re.compile(f"(?:{inside})*+{quote}", re.DOTALL) if self.quote else None

    def _begin(self, text: str, position: int) -> int:
        """Where a field begins: a quote may follow blanks that the options say to skip."""
        while (
            self._skips_blanks
            and position < len(text)
            and text[position] in " \t"
            and text[position] != self.separator
        ):
            position += 1
        return position

    def leaves_open(self, text: str, *, quoted: bool) -> bool:
        """Whether a line ends inside a quoted field. `quoted` says whether it begins in one."""
        if self._closing is None:
            return False
        position = 0
        while True:
            position = position if quoted else self._begin(text, position)
            if quoted or text.startswith(self.quote, position):
                closed = self._closing.match(text, position if quoted else position + 1)
                if closed is None:
                    return True
                position, quoted = closed.end(), False
            following = text.find(self.separator, position)
            if following < 0:
                return False
            position = following + len(self.separator)

    def count_fields(self, text: str) -> int:
        position, fields = 0, 1
        while True:
            position = self._begin(text, position)
            if self._closing is not None and text.startswith(self.quote, position):
                closed = self._closing.match(text, position + 1)
                position = closed.end() if closed else len(text)
            following = text.find(self.separator, position)
            if following < 0:
                return fields
            position, fields = following + len(self.separator), fields + 1

    def fields(self, text: str) -> list[str]:
        """The fields of a header."""
        if len(self.separator) > 1:
            return [field.strip().strip(self.quote) for field in text.split(self.separator)]
        if not self.quote:
            return text.split(self.separator)
        return next(csv.reader([text], delimiter=self.separator, quotechar=self.quote), [])


def split_records(
    blocks: Iterable[bytes], dialect: Dialect, encoding: str, *, more_to_come: bool
) -> Iterator[Record]:
    """The records of a piece: lines (ended by LF, CR LF or CR) that are neither blank nor a comment.

    A quoted field may contain line breaks. If one is open at the end and there is `more_to_come`, the record
    waits.
    """
    lines = _Lines(_split_lines(blocks))
    for line, start in lines:
        text, sound = decode_line(line.rstrip(b"\r\n"), encoding)
        is_blank = not text.strip(" \t") and dialect.separator not in text
        if is_blank or (dialect.comment and text.startswith(dialect.comment)):
            continue
        if dialect.quote not in text or not dialect.leaves_open(text, quoted=False):
            yield Record(text, start, sound)
            continue
        further, ended = _find_end(lines, dialect, encoding)
        if further is None:
            if ended and more_to_come:
                yield Record(text, start, sound, waits=True)
                return
            yield Record(text, start, sound=False)
            continue
        text, sound = decode_line(b"".join((line, *further)).rstrip(b"\r\n"), encoding)
        yield Record(text, start, sound)


def _find_end(lines: "_Lines", dialect: Dialect, encoding: str) -> tuple[list[bytes] | None, bool]:
    """The further lines of a record whose quoted field is open, and whether the piece ended before.

    The lines are None if nothing closes the field.
    """
    taken: list[tuple[bytes, int]] = []
    size = 0
    for line, start in lines:
        taken.append((line, start))
        size += len(line)
        if not dialect.leaves_open(decode_line(line.rstrip(b"\r\n"), encoding)[0], quoted=True):
            return [line for line, _ in taken], False
        if size > LONGEST_QUOTED:
            lines.put_back(taken)
            return None, False
    lines.put_back(taken)
    return None, True


class _Lines:
    """Lines with their positions, some of which may be put back."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._position = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> tuple[bytes, int]:
        if self._waiting:
            return self._waiting.popleft()
        line = next(self._lines)
        start = self._position
        self._position += len(line)
        return line, start

    def put_back(self, lines: list[tuple[bytes, int]]) -> None:
        self._waiting.extendleft(reversed(lines))


def _split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their endings. `bytes.splitlines` knows LF, CR LF and CR and nothing else."""
    rest = b""
    for block in blocks:
        data = rest + block
        lines = data.splitlines(keepends=True)
        # The last line may continue, and a CR at its end may be half of CR LF.
        rest = lines.pop() if lines else b""
        yield from lines
    if rest:
        yield rest
