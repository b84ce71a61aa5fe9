"""The bytes of a file -> its lines as text. What cannot be decoded is kept and marked, never replaced."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strandline.model.errors import WorkError
from strandline.model.project import FileSource

_BLOCK = 1 << 24
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # begins like the one of UTF-16, so it is tried first
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WIDE = ("utf-16", "utf-32")


class FileRefusedError(WorkError):
    """A file that cannot be received as it is. The other files of its source go on."""

    slug = "file-unreadable"


@dataclass(frozen=True, slots=True)
class Encoding:
    name: str
    mark: int = 0
    """Number of bytes of the byte order mark at the file's start."""

    @property
    def wide(self) -> bool:
        """Whether a newline has more than one byte. Such a file is decoded and read whole."""
        return self.name.startswith(_WIDE)


def find_encoding(source: FileSource, path: Path, shown: str) -> Encoding:
    """The encoding according to the file's byte order mark, else `options: {encoding: ...}`, else UTF-8.

    `shown` is the file's name in messages.
    """
    try:
        with _open(path) as stream:
            start = stream.read(4)
    except (OSError, EOFError, zlib.error) as error:
        raise refuse(source, shown, error) from error
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return Encoding(name, 0 if name in _WIDE else len(mark))  # a wide decoder removes its mark itself
    options = {key.lower(): value for key, value in source.options.items()}
    declared = options.get("encoding") or options.get("charset") or "utf-8"
    try:
        return Encoding(codecs.lookup(declared).name)
    except LookupError as error:
        raise WorkError(
            f"{source.place}: `{source.name}` declares the encoding `{declared}`, which is not known.",
            remedy="Write `options: {encoding: utf-8}`, or another one that Python knows,"
            " as latin-1 or utf-16.",
            slug="unknown-encoding",
        ) from error


def read_blocks(
    source: FileSource, path: Path, shown: str, encoding: Encoding, start: int, end: int
) -> Iterator[bytes]:
    """The bytes from `start` to `end`, without a byte order mark.

    A packed or wide file is read whole, as UTF-8.

    A file that is refused is refused before the first block.
    """
    if path.suffix == ".gz" or encoding.wide:
        return iter([_decode_wide(source, shown, _read_whole(source, path, shown), encoding)])
    try:
        stream = path.open("rb")
    except OSError as error:
        raise refuse(source, shown, error) from error

    def blocks() -> Iterator[bytes]:
        position = max(start, encoding.mark) if start == 0 else start
        with stream:
            stream.seek(position)
            while position < end:
                block = stream.read(min(_BLOCK, end - position))
                if not block:
                    raise WorkError(
                        f"`{shown}` became shorter while it was read.",
                        remedy="Run again.",
                        slug="file-changed",
                    )
                position += len(block)
                yield block

    return blocks()


def _read_whole(source: FileSource, path: Path, shown: str) -> bytes:
    """The content of a file, unpacked if its name says so."""
    try:
        with _open(path) as stream:
            return stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise refuse(source, shown, error) from error


def decode_line(line: bytes, encoding: str) -> tuple[str, bool]:
    """The text of a line, and whether it is text at all.

    If it is not, each invalid byte is shown as `\\xNN` and each backslash is doubled, so that the bytes can
    be recovered.
    """
    try:
        return line.decode(encoding), True
    except UnicodeDecodeError:
        return line.replace(b"\\", b"\\\\").decode(encoding, errors="backslashreplace"), False


def _open(path: Path) -> gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _decode_wide(source: FileSource, shown: str, data: bytes, encoding: Encoding) -> bytes:
    if not encoding.wide:
        return data[encoding.mark :]
    try:
        return data.decode(encoding.name).encode()
    except UnicodeError as error:
        raise FileRefusedError(
            f"{source.place}: `{shown}` says that it is {encoding.name.upper()}, and cannot be decoded:"
            f" {error}.",
            remedy="Write the file again, as UTF-8.",
            slug="not-text",
        ) from error


def refuse(source: FileSource, shown: str, error: Exception) -> FileRefusedError:
    """The refusal of a file that cannot be opened or unpacked."""
    what = (
        "cannot be unpacked"
        if shown.endswith(".gz") and not isinstance(error, PermissionError)
        else "cannot be read"
    )
    return FileRefusedError(
        f"{source.place}: `{shown}` {what}: {_reason(error)}.",
        remedy="Write the file again, make it readable, or move it out of the source's folder.",
        slug="file-unreadable",
    )


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
