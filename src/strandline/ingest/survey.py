"""What of each file is new: whole files, the lines a file has grown by, nothing, or a refusal."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from strandline.model.errors import WorkError
from strandline.model.files import FileRead, FileSeen
from strandline.model.project import FileFormat, FileSource

from .text import Encoding, FileRefusedError, find_encoding, refuse

_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes `start` to `end` of a file, to be received. Its first line or row has the place `first_place`."""

    file: Path
    read: FileRead
    """The file's entry once this piece is received."""
    start: int
    end: int
    first_place: int
    encoding: Encoding
    final: bool
    """Nothing more is waited for: the file is read whole, or did not change while a part of it waited."""

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end == self.read.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a look into files found.

    `seen` are files whose entry changes although no row is received. `refused` are files that cannot be
    read, by path.
    """

    pieces: tuple[Piece, ...]
    seen: tuple[FileRead, ...]
    refused: Mapping[str, FileRefusedError] = field(default_factory=dict)
    notes: tuple[str, ...]


def survey(
    source: FileSource, folder: str, files: tuple[FileSeen, ...], known: dict[str, FileRead]
) -> Survey:
    """Look into files that the listing says are new or changed."""
    pieces: list[Piece] = []
    seen: list[FileRead] = []
    notes: list[str] = []
    refused: dict[str, FileRefusedError] = {}
    contents = {r.digest: r.path for r in known.values() if r.bytes and r.bytes == r.size and not r.same_as}
    for file in files:
        path = Path(folder, file.path)
        before = known.get(file.path)
        if before and before.same_as:
            before = None
        try:
            encoding = (
                find_encoding(source, path, file.path)
                if source.format is not FileFormat.PARQUET
                else Encoding("")
            )
            take = _grow if _grows(source, path, encoding) else _take_whole
            piece = take(source, path, file, before, encoding)
        except FileRefusedError as error:
            refused[file.path] = error
            continue
        except OSError as error:
            refused[file.path] = refuse(source, file.path, error)
            continue
        if piece is None:
            assert before is not None
            seen.append(_looked_at(before, file))
            continue
        digest = piece.read.digest
        if (
            before is None
            and not source.complete
            and piece.whole
            and file.size
            and contents.get(digest, file.path) != file.path
        ):
            seen.append(replace(piece.read, same_as=contents[digest]))
            notes.append(f"{file.path} has the same content as {contents[digest]} and was skipped")
            continue
        contents.setdefault(digest, file.path)
        if piece.read.unfinished:
            notes.append(f"{file.path} ends in a line without a newline: it waits (unfinished)")
        if piece.start == piece.end and not (source.complete and before is None):
            seen.append(piece.read)
        else:
            pieces.append(piece)
    return Survey(pieces=tuple(pieces), seen=tuple(seen), refused=refused, notes=tuple(notes))


def _grows(source: FileSource, path: Path, encoding: Encoding) -> bool:
    """Lines may be added to plain jsonl and csv; everything else is read whole."""
    return source.format in (FileFormat.JSONL, FileFormat.CSV) and path.suffix != ".gz" and not encoding.wide


def _take_whole(
    source: FileSource, path: Path, file: FileSeen, before: FileRead | None, encoding: Encoding
) -> Piece | None:
    digest = _digest(path, file.size)
    if before is not None and before.digest == digest and before.bytes == file.size:
        return None
    # One that was empty has no earlier part that could have changed.
    revision = before.revision if before and not before.bytes else _next_revision(source, file, before)
    read = FileRead(
        path=file.path,
        revision=revision,
        bytes=file.size,
        rows=0,
        digest=digest,
        size=file.size,
        modified_ns=file.modified_ns,
    )
    return Piece(file=path, read=read, start=0, end=file.size, first_place=1, encoding=encoding, final=True)


def _grow(
    source: FileSource, path: Path, file: FileSeen, before: FileRead | None, encoding: Encoding
) -> Piece | None:
    """A file of lines: from the end of the part already taken up to its last whole line.

    Each byte is read once.
    """
    with path.open("rb") as stream:
        revision, rows, start = 0, 0, 0
        digest = hashlib.sha256()
        if before is not None:
            revision = before.revision
            if file.size >= before.bytes and _hash(stream, before.bytes, digest) == before.digest:
                rows, start = (
                    before.rows,
                    before.bytes + _end_open_line(stream, before.bytes, file.size, digest),
                )
            else:
                revision = _next_revision(source, file, before)
                before, digest = None, hashlib.sha256()
                stream.seek(0)
        lines = _take_lines(stream, start, file.size, digest)
    still = (
        before is not None
        and bool(before.unfinished)
        and (before.size, before.modified_ns) == (file.size, file.modified_ns)
    )
    lines = lines.with_tail(source, still=still)
    if before is not None and lines.end == before.bytes and not (lines.waits or before.unfinished):
        return None
    read = FileRead(
        path=file.path,
        revision=revision,
        bytes=lines.end,
        rows=rows + lines.count,
        digest=lines.digest,
        size=file.size,
        modified_ns=file.modified_ns,
        seen_unchanged=lines.waits,
        unfinished=lines.waits,
    )
    return Piece(
        file=path, read=read, start=start, end=lines.end, first_place=rows + 1, encoding=encoding, final=still
    )


def leave_open(piece: Piece, end: int) -> Piece:
    """The piece without its last record, which has not ended: it waits like a last line without a newline."""
    read = replace(piece.read, bytes=end, digest=_digest(piece.file, end), unfinished=1, seen_unchanged=1)
    return replace(piece, end=end, read=read)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """The lines of a file that may be taken, and what follows the last of them."""

    end: int
    """The byte after the last line."""
    count: int
    digest: str
    """Of the file up to `end`."""
    tail: bytes
    """What follows: a line without a newline."""
    size: int
    digest_with_tail: str
    waits: int = 0
    """1 while the tail waits for its newline."""

    def with_tail(self, source: FileSource, *, still: bool) -> "_Lines":
        """Take the tail too if it is a whole JSON message, or did not grow since the last run (`still`)."""
        if not self.tail.strip():
            return self
        if still or (source.format is FileFormat.JSONL and _parses(self.tail)):
            return replace(self, end=self.size, count=self.count + 1, digest=self.digest_with_tail)
        return replace(self, waits=1)


def _take_lines(stream: BinaryIO, start: int, size: int, digest: "hashlib._Hash") -> _Lines:
    """Read on from `start` to `size`. `digest` has taken what is before `start`."""
    count, end, position, tail = 0, start, start, b""
    at_end = digest.copy()
    while position < size and (block := stream.read(min(_BLOCK, size - position))):
        count += block.count(b"\n")
        after = block.rfind(b"\n") + 1
        digest.update(block[:after])
        if after:
            end, tail, at_end = position + after, b"", digest.copy()
        digest.update(block[after:])
        tail += block[after:]
        position += len(block)
    return _Lines(
        end=end,
        count=count,
        digest=at_end.hexdigest(),
        tail=tail,
        size=size,
        digest_with_tail=digest.hexdigest(),
    )


def _end_open_line(stream: BinaryIO, end: int, size: int, digest: "hashlib._Hash") -> int:
    """The bytes of a newline that ends a last line which was taken without one: it begins no line."""
    stream.seek(max(0, end - 1))
    if end == 0 or stream.read(1) == b"\n":
        return 0
    rest = stream.readline(size - end)
    if rest.endswith(b"\n") and not rest.strip():
        digest.update(rest)
        return len(rest)
    stream.seek(end)
    return 0


def _parses(line: bytes) -> bool:
    try:
        json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _digest(path: Path, size: int) -> str:
    with path.open("rb") as stream:
        return _hash(stream, size, hashlib.sha256())


def _hash(stream: BinaryIO, size: int, digest: "hashlib._Hash") -> str:
    """Add the next `size` bytes to a digest."""
    left = size
    while left > 0 and (block := stream.read(min(_BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest()


def _next_revision(source: FileSource, file: FileSeen, before: FileRead | None) -> int:
    if before is None:
        return 0
    if source.offer_rewritten_again:
        return before.revision + 1
    raise WorkError(
        f"{source.place}: `{file.path}` was read before and its earlier part has changed since. "
        "What was received is kept.",
        remedy="Put the old content back and send corrections as new lines, or say "
        f"`on_rewrite: offer_again` for `{source.name}` to take the file as its next revision.",
        slug="file-rewritten",
    )


def _looked_at(before: FileRead, file: FileSeen) -> FileRead:
    return replace(before, size=file.size, modified_ns=file.modified_ns)
