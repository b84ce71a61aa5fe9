"""Files with their own columns: csv and Parquet."""

import csv
from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline.model.columns import METADATA_COLUMNS, PAYLOAD, POSITION, RESERVED_PREFIX, quote
from strandline.model.project import FileFormat, FileSource

from .csv_records import Dialect, split_records
from .names import check_names
from .parquet import read_parquet
from .received import Received
from .staging import TextWriter
from .survey import Piece, leave_open
from .text import FileRefusedError, read_blocks

_CORRUPT = f"{RESERVED_PREFIX}corrupt"
_OURS = ("header", "encoding", "charset", "comment", "linesep", "multiline")
"""Options that say where a record begins and ends.

They are used up before Spark splits a record into fields.
"""
MOST_FIELDS = 20_000
"""On a record with more fields than it expects, Spark's parser fails as a whole, not for that row alone."""
_NO_VALUE = "\x00strandline\x00"
"""The text for NULL, which no file contains.

An unquoted empty field is NULL and a quoted one is not. Spark distinguishes them if NULL has its own
spelling.
"""


def read_tabular(
    session: SparkSession,
    source: FileSource,
    pieces: tuple[Piece, ...],
    staging: str,
    stored: StructType | None,
) -> tuple[DataFrame | None, Received]:
    """Rows with their native columns and `_source_position`.

    A row that does not fit the stored types is kept as JSON in `_payload`.
    """
    read = _read_csv if source.format is FileFormat.CSV else read_parquet
    frames, received = read(session, source, pieces, staging)
    types: dict[str, str] = {
        f.name: f.dataType.simpleString() for f in stored or () if f.name not in METADATA_COLUMNS
    }
    result: DataFrame | None = None
    for rows in frames:
        fitted = _fit(rows, types)
        types = {
            **{f.name: f.dataType.simpleString() for f in fitted.schema if f.name not in METADATA_COLUMNS},
            **types,
        }
        result = fitted if result is None else result.unionByName(fitted, allowMissingColumns=True)
    return result, received


def _read_csv(
    session: SparkSession, source: FileSource, pieces: tuple[Piece, ...], staging: str
) -> tuple[list[DataFrame], Received]:
    """Files that share their columns are read together."""
    received = Received()
    dialect = Dialect(source)
    writers: dict[tuple[str, ...], TextWriter] = {}
    for piece in pieces:
        path = piece.read.path
        try:
            columns = _find_columns(source, piece, dialect)
            blocks = read_blocks(source, piece.file, piece.read.path, piece.encoding, piece.start, piece.end)
        except FileRefusedError as error:
            received.refused[path] = error
            continue
        if not columns:
            # Only blank lines so far.
            received.pieces[path], received.counts[path] = piece, 0
            continue
        if columns not in writers:
            writers[columns] = TextWriter(f"{staging}/csv_{len(writers)}.parquet")
        taken, count = _write_records(writers[columns], piece, blocks, dialect)
        received.pieces[path], received.counts[path] = taken, count
        if taken.read.unfinished and not piece.read.unfinished:
            received.notes.append(f"{path} ends inside a quoted field: its last record waits (unfinished)")
    return [
        _take_apart(writer.read(session), columns, source) for columns, writer in writers.items()
    ], received


def _find_columns(source: FileSource, piece: Piece, dialect: Dialect) -> tuple[str, ...]:
    """From the file's first record, wherever the piece begins.

    A file without records has no columns and no rows.
    """
    encoding = "utf-8" if piece.encoding.wide else piece.encoding.name
    blocks = read_blocks(source, piece.file, piece.read.path, piece.encoding, 0, piece.read.size)
    first = next(split_records(blocks, dialect, encoding, more_to_come=False), None)
    if first is None:
        return ()
    try:
        fields = dialect.fields(first.text)
    except csv.Error:
        fields = []
    if not dialect.header:
        return tuple(f"_c{i}" for i in range(len(fields)))
    if not first.sound or not fields:
        raise FileRefusedError(
            f"{source.place}: the header of `{piece.read.path}` cannot be read: {first.text[:200]}",
            remedy="Write the file again as UTF-8 with one line of column names,"
            " or say `options: {encoding: ...}`.",
            slug="not-text",
        )
    if len(fields) > MOST_FIELDS:
        raise FileRefusedError(
            f"{source.place}: `{piece.read.path}` has {len(fields):,} columns;"
            f" at most {MOST_FIELDS:,} can be read.",
            remedy="Write fewer columns, or rows of JSON.",
            slug="too-many-columns",
        )
    return check_names(source, piece, fields)


def _write_records(
    writer: TextWriter, piece: Piece, blocks: Iterator[bytes], dialect: Dialect
) -> tuple[Piece, int]:
    """The piece as far as it was taken, and its number of rows.

    Rows are counted in the same place where they are found, so that positions cannot differ.
    """
    encoding = "utf-8" if piece.encoding.wide else piece.encoding.name
    header, rows = dialect.header and piece.start == 0, 0
    for record in split_records(blocks, dialect, encoding, more_to_come=not piece.final):
        if record.waits:
            piece = leave_open(piece, record.start + (piece.start or piece.encoding.mark))
        elif header:
            header = False
        else:
            few = (
                record.text.count(dialect.separator) < MOST_FIELDS
                or dialect.count_fields(record.text) <= MOST_FIELDS
            )
            place = piece.first_place + rows
            writer.add(piece.read.path, piece.read.revision, place, record.text, sound=record.sound and few)
            rows += 1
    taken = piece.first_place - 1 + rows
    return replace(piece, read=replace(piece.read, rows=taken)), rows


def _take_apart(rows: DataFrame, columns: tuple[str, ...], source: FileSource) -> DataFrame:
    """The fields of each record, split by Spark's own parser with the source's options.

    A record with more or fewer fields is kept whole.
    """
    schema = ", ".join([*(f"f{i} string" for i in range(len(columns))), f"{_CORRUPT} string"])
    options = {"escape": '"', "nullValue": _NO_VALUE, "emptyValue": ""}
    options |= {name: value for name, value in source.options.items() if name.lower() not in _OURS}
    # `multiLine` keeps the line breaks inside a quoted field as they are.
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "multiLine": "true"}
    options |= {"maxColumns": str(MOST_FIELDS + 1)}
    fields = F.from_csv(F.when(F.col("sound"), F.col("text")), schema, options)
    taken = rows.withColumn("fields", fields)
    broken = F.when(F.col("sound"), F.col("fields").getField(_CORRUPT)).otherwise(F.col("text"))
    values = [F.when(broken.isNull(), F.col(f"fields.f{i}")).alias(c) for i, c in enumerate(columns)]
    return taken.select(*values, broken.alias(PAYLOAD), F.struct("name", "part", "place").alias(POSITION))


def _fit(rows: DataFrame, types: dict[str, str]) -> DataFrame:
    """Keep rows of a file whose column has another type than the stored one, as JSON for the quarantine."""
    native = [f for f in rows.schema if f.name not in METADATA_COLUMNS]
    other = [f.name for f in native if f.name in types and types[f.name] != f.dataType.simpleString()]
    if not other:
        return rows
    as_json = F.to_json(F.struct(*(quote(f.name) for f in native)))
    blank = {f.name: F.lit(None).cast(types.get(f.name, f.dataType.simpleString())) for f in native}
    return rows.withColumn(PAYLOAD, as_json).withColumns(blank)
