"""Messages: lines of jsonl and elements of json documents, their text exactly as it came."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.model.columns import PAYLOAD, POSITION
from strandline.model.project import FileFormat, FileSource

from .received import Received
from .splitting import split_document, split_lines
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
            writer.add(path, piece.read.revision, place, text)
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
        return split_lines(blocks, encoding, piece.first_place)
    return split_document(*decode_line(b"".join(blocks), encoding))
