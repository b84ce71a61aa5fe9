"""Parquet files, through Spark's reader.

What Spark or Delta cannot hold is written again in a type that both can.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    FloatType,
    IntegerType,
    MapType,
    NullType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from strandline.lake.location import open_folder
from strandline.model.columns import PAYLOAD, POSITION, native_name, quote
from strandline.model.project import FileSource

from .names import check_names
from .received import Received
from .survey import Piece
from .text import FileRefusedError

_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")
_DELTAS = ("DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
_ENCODINGS = frozenset(("PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY", *_DELTAS))


def read_parquet(
    session: SparkSession, source: FileSource, pieces: tuple[Piece, ...], staging: str
) -> tuple[list[DataFrame], Received]:
    """Frames of rows, one for each set of columns."""
    frames: list[DataFrame] = []
    received = Received()
    for schema, spark_reads, members in _group(source, pieces, received):
        paths = {str(p.file): p for p in members}
        if not spark_reads or not _is_plain(session, paths):
            paths = _write_plain(source, schema, members, f"{staging}/plain_{len(frames)}", received)
        if paths:
            frames.append(_read(session, paths))
    return frames, received


def _group(
    source: FileSource, pieces: tuple[Piece, ...], received: Received
) -> list[tuple[pa.Schema, bool, list[Piece]]]:
    """Files by the columns and types in their footers, and whether Spark supports how they are written."""
    grouped: dict[tuple[str, ...], tuple[pa.Schema, bool, list[Piece]]] = {}
    for piece in pieces:
        path = piece.read.path
        try:
            metadata = pq.read_metadata(piece.file)
            schema = metadata.schema.to_arrow_schema()
            check_names(source, piece, schema.names)
            _read_pages(piece)
        except FileRefusedError as error:
            received.refused[path] = error
            continue
        except (pa.ArrowException, OSError, ValueError) as error:
            received.refused[path] = FileRefusedError(
                f"{source.place}: `{path}` is not a Parquet file that can be read:"
                f" {str(error).splitlines()[0]}",
                remedy="It is empty, cut off, damaged or encrypted."
                " Write it again, or move it out of the source's folder.",
                slug="file-unreadable",
            )
            continue
        received.pieces[path], received.counts[path] = piece, metadata.num_rows
        physical = tuple(metadata.schema.column(i).physical_type for i in range(metadata.num_columns))
        spark_reads = _spark_reads(metadata)
        signature = (*(f"{f.name}:{f.type}" for f in schema), *physical, str(spark_reads))
        grouped.setdefault(signature, (schema, spark_reads, []))[2].append(piece)
    return list(grouped.values())


def _read_pages(piece: Piece) -> None:
    """Read every page once.

    A damaged page behind a sound footer would fail the commit of every file of the task.
    """
    with pq.ParquetFile(piece.file) as file:
        for _ in file.iter_batches():
            pass


def _spark_reads(metadata: pq.FileMetaData) -> bool:
    """Whether Spark knows the encodings and codecs in a file."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    chunks = (group.column(i) for group in groups for i in range(group.num_columns))
    return all(chunk.compression in _CODECS and _ENCODINGS.issuperset(chunk.encodings) for chunk in chunks)


def _is_plain(session: SparkSession, paths: dict[str, Piece]) -> bool:
    """Whether Spark knows the types in these files, and Delta can hold them."""
    try:
        frame = session.read.parquet(next(iter(paths)))
    except PySparkException:
        return False
    return all(isinstance(f.dataType, NullType) or _is_held(f.dataType) for f in frame.schema)


def _is_held(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _is_held(kind.elementType)
        case MapType():
            return _is_held(kind.keyType) and _is_held(kind.valueType)
        case StructType():
            return bool(kind.fields) and all(_is_held(f.dataType) for f in kind.fields)
        case _:
            return kind.typeName() not in (
                "void",
                "time",
                "interval",
                "variant",
            ) and not kind.typeName().startswith(("time(", "interval"))


def _write_plain(
    source: FileSource, schema: pa.Schema, pieces: list[Piece], folder: str, received: Received
) -> dict[str, Piece]:
    """Write the same rows in types that Spark reads. Returns the written files by path."""
    written: dict[str, Piece] = {}
    for index, piece in enumerate(pieces):
        try:
            plain = pa.schema(
                [pa.field(f.name, _plain_type(f.type)) for f in schema if not pa.types.is_null(f.type)]
            )
            target = f"{folder}_{index}.parquet"
            file_system, path = open_folder(target)
            file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
            with (
                pq.ParquetFile(piece.file) as file,
                pq.ParquetWriter(path, plain, filesystem=file_system) as out,
            ):
                for batch in file.iter_batches(columns=plain.names):
                    out.write_table(
                        pa.table([_plain(batch.column(f.name), f.type) for f in plain], schema=plain)
                    )
        except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
            name = piece.read.path
            del received.pieces[name], received.counts[name]
            received.refused[name] = FileRefusedError(
                f"{source.place}: `{name}` has columns that cannot be kept: {str(error).splitlines()[0]}",
                remedy="Write them as another type: text, say, or a decimal of at most 38 digits.",
                slug="type-not-kept",
            )
            continue
        written[target] = piece
    return written


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Timestamps to the microsecond, small floats as double, times as text, large integers as decimals."""
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if types.is_float16(kind):
        return pa.float64()
    if types.is_time(kind) or types.is_null(kind):
        return pa.string()
    if types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if types.is_decimal(kind):
        if kind.precision > 38:
            raise ValueError(f"decimal({kind.precision},{kind.scale}) has more than 38 digits")
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([f.with_type(_plain_type(f.type)) for f in kind])
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    return kind


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")  # rounds down, also before 1970
    return column.cast(kind, safe=False) if column.type != kind else column


def _read(session: SparkSession, paths: dict[str, Piece]) -> DataFrame:
    rows = session.read.parquet(*paths)
    listed = [(_encode_path(session, path), p.read.path, p.read.revision) for path, p in paths.items()]
    files = session.createDataFrame(listed, "__file string, __name string, __part bigint")
    # A column of nothing but NULL may have no type. It is added once a file says what it contains.
    native = [f for f in rows.schema if not isinstance(f.dataType, NullType)]
    values = F.struct(*(_widened(f) for f in native)).alias("__values")
    placed = rows.select(values, _file_path().alias("__file"), F.col("_metadata.row_index").alias("__row"))
    placed = placed.join(F.broadcast(files), "__file", "left")
    columns = [F.col("__values").getField(native_name(f.name)).alias(native_name(f.name)) for f in native]
    return placed.select(*columns, F.lit(None).cast("string").alias(PAYLOAD), _position(F.col("__row") + 1))


def _position(place: Column) -> Column:
    """The position of a row.

    A row of a file that was not requested has none: it stops the task instead of being lost.
    """
    unknown = F.raise_error(
        F.concat(F.lit("Rows came from a file that was not requested: "), F.col("__file"))
    )
    name = F.when(F.col("__name").isNull(), unknown.cast("string")).otherwise(F.col("__name"))
    return F.struct(name.alias("name"), F.col("__part").alias("part"), place.alias("place")).alias(POSITION)


def _widened(field: StructField) -> Column:
    """Integers as bigint, floats as double, zoneless timestamps as UTC.

    A narrower type is then not a change.
    """
    column = F.col(quote(field.name))
    match field.dataType:
        case ByteType() | ShortType() | IntegerType():
            column = column.cast("bigint")
        case FloatType():
            column = column.cast("double")
        case kind:
            stored = _stored_type(kind)
            column = column if stored == kind else column.cast(stored)
    return column.alias(native_name(field.name))


def _stored_type(kind: DataType) -> DataType:
    """The type with names that Delta accepts in structs, and zoneless timestamps as UTC.

    Spark casts structs by position.
    """
    match kind:
        case TimestampNTZType():
            return TimestampType()
        case ArrayType():
            return ArrayType(_stored_type(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_stored_type(kind.keyType), _stored_type(kind.valueType), kind.valueContainsNull)
        case StructType():
            names: tuple[str, ...] = ()
            for field in kind.fields:
                names = _add_name(names, field.name)
            return StructType(
                [
                    StructField(n, _stored_type(f.dataType), f.nullable)
                    for n, f in zip(names, kind.fields, strict=True)
                ]
            )
        case _:
            return kind


def _add_name(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Add a field of a struct, keeping its case.

    A character that Delta refuses becomes `_`, as many as make it unique.
    """
    cleaned = re.sub(r"[\x00-\x1f\x7f ,;{}()=]", "_", name) or "_"
    while cleaned.lower() in (n.lower() for n in names):
        cleaned += "_"
    return (*names, cleaned)


def _file_path() -> Column:
    """The file a row came from. Spark writes `file:/a` or `file:///a` for the same path; here it is one."""
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "file:/")


def _encode_path(session: SparkSession, path: str) -> str:
    """A path as `_file_path` writes it."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    address = path if ":/" in path else f"file:{path}"
    spelt = str(
        jvm.org.apache.spark.paths.SparkPath.fromPath(jvm.org.apache.hadoop.fs.Path(address)).urlEncoded()
    )
    return re.sub("^file:/+", "file:/", spelt)
