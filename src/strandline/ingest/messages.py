"""Messages: lines of jsonl and elements of json documents, their text exactly as it came."""

import json
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.model.columns import PAYLOAD, POSITION
from strandline.model.project import FileFormat, FileSource

from .received import Received
from .staging import TextWriter
from .survey import Piece
from .text import FileRefusedError, decode_line, read_blocks

POSITION_TYPE = "struct<name:string,part:bigint,place:bigint>"


def read_messages(
    session: SparkSession, source: FileSource, pieces: tuple[Piece, ...], staging: str
) -> tuple[DataFrame, Received]:
    """Rows of (`_payload`, `_source_position`)."""
    writer = TextWriter(f"{staging}/messages.parquet")
    received = Received()
    for piece in pieces:
        path = piece.read.path
        try:
            messages = find_messages(source, piece)
        except FileRefusedError as error:
            received.refused[path] = error
            continue
        count = 0
        for place, text in messages:
            writer.add(piece, text, place)
            count += 1
        received.pieces[path], received.counts[path] = piece, count
    rows = writer.read(session)
    return rows.select(
        F.col("text").alias(PAYLOAD), F.struct("name", "part", "place").alias(POSITION)
    ), received


def find_messages(source: FileSource, piece: Piece) -> Iterator[tuple[int, str]]:
    """(place, text) of each message of a piece."""
    blocks = read_blocks(source, piece.file, piece.read.path, piece.encoding, piece.start, piece.end)
    encoding = "utf-8" if piece.encoding.wide else piece.encoding.name
    if source.format is FileFormat.JSONL:
        return _lines(blocks, encoding, piece.first_place)
    return _elements(*decode_line(b"".join(blocks), encoding))


def _lines(blocks: Iterable[bytes], encoding: str, place: int) -> Iterator[tuple[int, str]]:
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


def _elements(text: str, sound: bool) -> Iterator[tuple[int, str]]:
    """The messages of a document: each element of an array, else the whole document.

    A document that is not JSON stays one message, for the quarantine.
    """
    start = len(text) - len(text.lstrip())
    if not text.strip():
        return
    if text[start] != "[" or not sound or not _is_json(text):
        yield 1, text.strip()
        return
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    position, place = start + 1, 0
    while True:
        while text[position] in " \t\r\n,":
            position += 1
        if text[position] == "]":
            return
        _, end = decoder.raw_decode(text, position)
        place += 1
        yield place, text[position:end]
        position = end


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=str, parse_float=str)  # Python limits the digits of an int, JSON does not
    except (ValueError, RecursionError):
        return False
    return True
