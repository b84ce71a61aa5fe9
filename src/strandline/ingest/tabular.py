"""Files with columns of their own: csv and Parquet, through Spark's readers."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, FloatType, IntegerType, NullType, ShortType, StringType, StructField, StructType, TimestampNTZType

from strandline.lake.location import open_folder
from strandline.model.columns import METADATA_COLUMNS, PAYLOAD, POSITION, quote
from strandline.model.errors import WorkError
from strandline.model.project import FileFormat, FileSource

from .survey import Piece, open_bytes

_ONE_FILE_A_PARTITION = str(1 << 42)
_CORRUPT = "__corrupt"
_ROW_BITS = (1 << 33) - 1
"""`monotonically_increasing_id` counts the rows of a partition in its low 33 bits."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Pieces that share their columns, so that one read serves them."""

    columns: tuple[str, ...]
    pieces: tuple[Piece, ...]


def read_tabular(
    session: SparkSession, source: FileSource, pieces: tuple[Piece, ...], staging: str, stored: StructType | None
) -> tuple[DataFrame, dict[str, int]]:
    """Rows with their native columns and `_source_position`; one that does not fit the stored types keeps itself as JSON in `_payload`."""
    counts: dict[str, int] = {}
    frames: list[DataFrame] = []
    for part in _parts(source, pieces, counts):
        rows = _read_csv(session, source, part, staging, len(frames)) if source.format is FileFormat.CSV else _read_parquet(session, part)
        frames.append(rows)
    types: dict[str, str] = {f.name: f.dataType.simpleString() for f in stored or () if f.name not in METADATA_COLUMNS}
    result: DataFrame | None = None
    for rows in frames:
        fitted = _fit(rows, types)
        types = {**{f.name: f.dataType.simpleString() for f in fitted.schema if f.name not in METADATA_COLUMNS}, **types}
        result = fitted if result is None else result.unionByName(fitted, allowMissingColumns=True)
    assert result is not None
    return result, counts


def _parts(source: FileSource, pieces: tuple[Piece, ...], counts: dict[str, int]) -> list[_Part]:
    grouped: dict[tuple[str, ...], list[Piece]] = {}
    for piece in pieces:
        if source.format is FileFormat.CSV:
            columns = signature = _csv_header(source, piece)
            counts[piece.read.path] = _count_rows(source, piece)
        else:
            metadata = pq.read_metadata(piece.file)
            counts[piece.read.path] = metadata.num_rows
            schema = metadata.schema.to_arrow_schema()
            columns = tuple(schema.names)
            signature = tuple(f"{f.name}:{f.type}" for f in schema)
        _check_names(source, piece, columns)
        grouped.setdefault(signature, []).append(piece)
    return [_Part(columns=signature, pieces=tuple(members)) for signature, members in grouped.items()]


def _check_names(source: FileSource, piece: Piece, columns: tuple[str, ...]) -> None:
    lowered = [c.lower() for c in columns]
    twice = sorted({c for c in lowered if lowered.count(c) > 1})
    taken = sorted(set(lowered) & set(METADATA_COLUMNS))
    if twice:
        raise WorkError(
            f"{source.place}: `{piece.read.path}` has columns that coincide in lower case: {', '.join(twice)}.",
            remedy="Rename one of them in the file.",
            slug="columns-coincide",
        )
    if taken:
        raise WorkError(
            f"{source.place}: `{piece.read.path}` has a column {', '.join(taken)}, a name that Strandline uses beside the row.",
            remedy="Rename it in the file.",
            slug="metadata-column",
        )


def _has_header(source: FileSource) -> bool:
    return str(source.options.get("header", "true")).lower() != "false"


def _count_rows(source: FileSource, piece: Piece) -> int:
    """The rows of a piece as Spark reads them: blank lines are none, nor is the header, which only a file's first piece holds."""
    if str(source.options.get("multiLine", "false")).lower() == "true":
        text = io.StringIO(open_bytes(piece.file).decode("utf-8-sig", errors="replace"), newline="")
        rows = sum(1 for row in csv.reader(text, delimiter=_separator(source)) if row)
    elif piece.file.suffix == ".gz":
        rows = sum(1 for line in io.BytesIO(open_bytes(piece.file)) if line.strip())
    else:
        with piece.file.open("rb") as stream:
            stream.seek(piece.start)
            rows = sum(1 for line in _lines_until(stream, piece.end) if line.strip())
    return max(0, rows - (1 if piece.start == 0 and _has_header(source) else 0))


def _lines_until(stream: BinaryIO, end: int) -> Iterator[bytes]:
    while stream.tell() < end and (line := stream.readline(end - stream.tell())):
        yield line


def _separator(source: FileSource) -> str:
    return (source.options.get("sep") or source.options.get("delimiter") or ",").replace("\\t", "\t")


def _csv_header(source: FileSource, piece: Piece) -> tuple[str, ...]:
    if piece.file.suffix == ".gz":
        first = open_bytes(piece.file).split(b"\n", 1)[0]
    else:
        with piece.file.open("rb") as stream:
            first = stream.readline()
    fields = next(csv.reader([first.decode("utf-8-sig", errors="replace").rstrip("\r\n")], delimiter=_separator(source)), [])
    return tuple(f.strip() for f in fields) if _has_header(source) else tuple(f"_c{i}" for i in range(len(fields)))


def _read_csv(session: SparkSession, source: FileSource, part: _Part, staging: str, number: int) -> DataFrame:
    """One file a partition, so that a row's number in its file is known."""
    own = session.newSession()
    own.conf.set("spark.sql.files.maxPartitionBytes", _ONE_FILE_A_PARTITION)
    own.conf.set("spark.sql.files.openCostInBytes", _ONE_FILE_A_PARTITION)
    places: dict[str, Piece] = {}
    for index, piece in enumerate(part.pieces):
        places[str(piece.file) if piece.whole else _cut(source, piece, f"{staging}/csv_{number}_{index}.csv")] = piece
    schema = StructType([*(StructField(c.lower(), StringType()) for c in part.columns), StructField(_CORRUPT, StringType())])
    # An unquoted empty field is NULL and a quoted one is not: Spark tells them apart when NULL is spelt in a way that no file has.
    options = {
        "escape": '"',
        "nullValue": "\x00",
        "emptyValue": "",
        **source.options,
        "header": str(_has_header(source)).lower(),
        "enforceSchema": "true",
    }
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    rows = own.read.schema(schema).options(**options).csv(list(places))
    rows = rows.withColumns({"__file": _file_path(), "__row": F.monotonically_increasing_id().bitwiseAND(_ROW_BITS)})
    listed = [(encode_path(own, path), p.read.path, p.read.revision, _first_row(source, p)) for path, p in places.items()]
    files = own.createDataFrame(listed, "__file string, __name string, __part bigint, __base bigint")
    rows = rows.join(F.broadcast(files), "__file", "left")
    position = _position(F.col("__base") + F.col("__row"))
    columns = [F.col(quote(c.lower())) for c in part.columns]
    return rows.select(*columns, F.col(_CORRUPT).alias(PAYLOAD), position)


def _first_row(source: FileSource, piece: Piece) -> int:
    """The place of a piece's first row: from 1, the header not counted."""
    return piece.first_place if piece.start == 0 or not _has_header(source) else piece.first_place - 1


def _cut(source: FileSource, piece: Piece, path: str) -> str:
    """The new lines of a grown file under its header, as a file of their own."""
    file_system, target = open_folder(path)
    file_system.create_dir(target.rsplit("/", 1)[0], recursive=True)
    with piece.file.open("rb") as stream:
        header = stream.readline() if _has_header(source) and piece.start else b""
        stream.seek(piece.start)
        with file_system.open_output_stream(target) as out:
            out.write(header)
            left = piece.end - piece.start
            while left > 0 and (block := stream.read(min(1 << 22, left))):
                out.write(block)
                left -= len(block)
    return path


def _read_parquet(session: SparkSession, part: _Part) -> DataFrame:
    paths = {str(p.file): p for p in part.pieces}
    rows = session.read.parquet(*paths)
    listed = [(encode_path(session, path), p.read.path, p.read.revision) for path, p in paths.items()]
    files = session.createDataFrame(listed, "__file string, __name string, __part bigint")
    # A column of nothing but NULL may come without a type: it is added once a file says what it holds.
    native = [f for f in rows.schema if not isinstance(f.dataType, NullType)]
    placed = rows.select(*(_widened(f, f.name) for f in native), _file_path().alias("__file"), F.col("_metadata.row_index").alias("__row"))
    placed = placed.join(F.broadcast(files), "__file", "left")
    position = _position(F.col("__row") + 1)
    columns = [F.col(quote(f.name.lower())) for f in native]
    return placed.select(*columns, F.lit(None).cast("string").alias(PAYLOAD), position)


def _position(place: Column) -> Column:
    """A row of a file that was not asked for would have no position: it stops the task instead of being lost."""
    unknown = F.raise_error(F.concat(F.lit("Rows came from a file that was not asked for: "), F.col("__file")))
    name = F.when(F.col("__name").isNull(), unknown.cast("string")).otherwise(F.col("__name"))
    return F.struct(name.alias("name"), F.col("__part").alias("part"), place.alias("place")).alias(POSITION)


def _widened(field: StructField, name: str) -> Column:
    """Integers as bigint, floats as double, zoneless timestamps as UTC: a file with a narrower type is no change."""
    column = F.col(quote(name))
    match field.dataType:
        case ByteType() | ShortType() | IntegerType():
            column = column.cast("bigint")
        case FloatType():
            column = column.cast("double")
        case TimestampNTZType():
            column = column.cast("timestamp")
        case _:
            pass
    return column.alias(name.lower())


def _fit(rows: DataFrame, types: dict[str, str]) -> DataFrame:
    """Keep a file whose column has another type than the stored one: as JSON, for the quarantine."""
    native = [f for f in rows.schema if f.name not in METADATA_COLUMNS]
    other = [f.name for f in native if f.name in types and types[f.name] != f.dataType.simpleString()]
    if not other:
        return rows
    as_json = F.to_json(F.struct(*(quote(f.name) for f in native)))
    blank = {f.name: F.lit(None).cast(types.get(f.name, f.dataType.simpleString())) for f in native}
    return rows.withColumn(PAYLOAD, as_json).withColumns(blank)


def _file_path() -> Column:
    """The file a row came from; `file:/a` and `file:///a` are one path, and Spark spells it either way."""
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "file:/")


def encode_path(session: SparkSession, path: str) -> str:
    """A path as `_file_path` spells it."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    address = path if ":/" in path else f"file:{path}"
    spelt = str(jvm.org.apache.spark.paths.SparkPath.fromPath(jvm.org.apache.hadoop.fs.Path(address)).urlEncoded())
    return re.sub("^file:/+", "file:/", spelt)
