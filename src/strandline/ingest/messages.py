"""Messages: lines of jsonl and elements of json documents, their text exactly as it came."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.lake.location import open_folder
from strandline.model.columns import PAYLOAD, POSITION
from strandline.model.project import FileFormat, FileSource

from .survey import Piece, open_bytes

_ROWS_A_BLOCK = 200_000
_SCHEMA = pa.schema([("payload", pa.string()), ("name", pa.string()), ("part", pa.int64()), ("place", pa.int64())])
POSITION_TYPE = "struct<name:string,part:bigint,place:bigint>"


def read_messages(session: SparkSession, source: FileSource, pieces: tuple[Piece, ...], staging: str) -> tuple[DataFrame, dict[str, int]]:
    """Rows of (`_payload`, `_source_position`), and how many each file gave."""
    file_system, path = open_folder(staging)
    file_system.create_dir(path, recursive=True)
    counts: dict[str, int] = {}
    with pq.ParquetWriter(f"{path}/messages.parquet", _SCHEMA, filesystem=file_system) as writer:
        for piece in pieces:
            counts[piece.read.path] = _write_piece(writer, source, piece)
    rows = session.read.schema("payload string, name string, part bigint, place bigint").parquet(f"{staging}/messages.parquet")
    return rows.select(F.col("payload").alias(PAYLOAD), F.struct("name", "part", "place").alias(POSITION)), counts


def _write_piece(writer: pq.ParquetWriter, source: FileSource, piece: Piece) -> int:
    texts: list[str] = []
    places: list[int] = []
    total = 0

    def flush() -> None:
        count = len(texts)
        columns = [
            pa.array(texts),
            pa.array([piece.read.path] * count),
            pa.array([piece.read.revision] * count, pa.int64()),
            pa.array(places, pa.int64()),
        ]
        writer.write_table(pa.table(columns, schema=_SCHEMA))
        texts.clear()
        places.clear()

    messages = _lines(piece) if source.format is FileFormat.JSONL else _elements(piece)
    for place, text in messages:
        texts.append(text)
        places.append(place)
        total += 1
        if len(texts) == _ROWS_A_BLOCK:
            flush()
    if texts:
        flush()
    return total


def _lines(piece: Piece) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank."""
    if piece.file.suffix == ".gz":
        data = open_bytes(piece.file)
    else:
        with piece.file.open("rb") as stream:
            stream.seek(piece.start)
            data = stream.read(piece.end - piece.start)
    for offset, line in enumerate(data.split(b"\n")):
        text = line.decode("utf-8", errors="replace").rstrip("\r")
        if text.strip():
            yield piece.first_place + offset, text


def _elements(piece: Piece) -> Iterator[tuple[int, str]]:
    """One document is one message; of an array, each element is one. A document that is not JSON stays one message, for the quarantine."""
    text = open_bytes(piece.file).decode("utf-8-sig", errors="replace")
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "[":
        if text.strip():
            yield 1, text.strip()
        return
    try:
        json.loads(text)
    except ValueError:
        yield 1, text.strip()
        return
    decoder = json.JSONDecoder()
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
