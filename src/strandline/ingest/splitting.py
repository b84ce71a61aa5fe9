"""Text with several messages -> each message's own text, with its place. Starts no Spark.

A message keeps its text as it came: every digit, the order of its keys, and keys that occur twice.
"""

import json
import re
from collections.abc import Iterable, Iterator

from .text import decode_line

_BLANKS = re.compile(r"[ \t\r\n]*")
LENIENT = json.JSONDecoder(parse_int=str, parse_float=str)
"""Python limits the digits of an int, JSON does not. `NaN` and `Infinity`, which JSON lacks, are taken."""


def split_lines(blocks: Iterable[bytes], encoding: str, place: int) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank.

    A line with undecodable bytes never passes for JSON.
    """
    rest: list[bytes] = []
    for block in blocks:
        *lines, last = block.split(b"\n")
        for line in lines:
            if rest:
                line, rest = b"".join((*rest, line)), []
            text = decode_line(line, encoding)[0].rstrip("\r")
            if text.strip():
                yield place, text
            place += 1
        rest.append(last)
    text = decode_line(b"".join(rest), encoding)[0].rstrip("\r")
    if text.strip():
        yield place, text


def split_document(text: str, sound: bool) -> Iterator[tuple[int, str]]:
    """The messages of a document: each element of an array, else the whole document.

    A document that is not JSON stays one message, for the quarantine.
    """
    if not text.strip():
        return
    messages = None
    if sound and text.lstrip().startswith("["):
        try:
            messages = list(split_json(text, LENIENT))
        except (ValueError, RecursionError):
            messages = None
    yield from messages if messages is not None else [(1, text.strip())]


def split_json(text: str, decoder: json.JSONDecoder) -> Iterator[tuple[int, str]]:
    """The messages of a JSON text: each element of an array, else the text.

    Raises ValueError where it is not JSON, after the messages before that.
    """
    position = _skip(text, 0)
    if not text.startswith("[", position):
        _, end = decoder.raw_decode(text, position)
        _require_end(text, end)
        yield 1, text[position:end]
        return
    position = _skip(text, position + 1)
    place = 0
    while not (place == 0 and text.startswith("]", position)):
        _, end = decoder.raw_decode(text, position)
        place += 1
        yield place, text[position:end]
        position = _skip(text, end)
        if text.startswith("]", position):
            break
        if not text.startswith(",", position):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip(text, position + 1)
    _require_end(text, position + 1)


def _skip(text: str, position: int) -> int:
    """The next character that is not white space."""
    blanks = _BLANKS.match(text, position)
    assert blanks is not None
    return blanks.end()


def _require_end(text: str, position: int) -> None:
    if (end := _skip(text, position)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
