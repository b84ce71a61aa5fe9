"""Reading: a dataset at a version, and the rows that left and came between two versions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.model.columns import DELETED, METADATA_COLUMNS, quote

from .checksums import require_sound_files
from .location import Lake, open_folder
from .log import AddedFile, read_entries
from .normal import groupable, holds_map
from .small import spark_schema
from .table import get_table

SIGN = "_sign"
"""+1 for a row that came, -1 for one that left."""


def read_table(session: SparkSession, lake: Lake, dataset: str, version: int) -> DataFrame:
    """A table exactly as it was at a version, with metadata columns and deleted rows."""
    return session.read.format("delta").option("versionAsOf", version).load(lake.table(dataset))


def read_added(session: SparkSession, lake: Lake, dataset: str, after: int, upto: int) -> DataFrame:
    """The rows that commits after one version and up to another added to an append-only table.

    They are read from the files of those commits: no change feed is needed.
    """
    root = lake.table(dataset)
    table = get_table(root, upto)
    schema = spark_schema(table)
    files = [f"{root}/{file.path}" for file in _added_files(root, after, upto)]
    if not files:
        return session.createDataFrame([], schema)
    if not table.partitioned_by:
        return session.read.schema(schema).parquet(*files)
    # Below the base path Spark takes the partition columns from the names of the folders.
    rows = session.read.option("basePath", root).schema(schema).parquet(*files)
    return rows.select(*map(quote, schema.names))


def read_added_column(lake: Lake, dataset: str, after: int, upto: int, column: str) -> pa.ChunkedArray:
    """One column of those rows, a number, without Spark."""
    return read_added_rows(lake, dataset, after, upto, [column]).column(column).cast(pa.int64())


def read_added_rows(lake: Lake, dataset: str, after: int, upto: int, columns: Sequence[str]) -> pa.Table:
    """Some columns of those rows, without Spark. A file older than a column has NULL there.

    Columns by which the table is partitioned are text.
    """
    file_system, root = open_folder(lake.table(dataset))
    added = _added_files(lake.table(dataset), after, upto)
    require_sound_files(lake.table(dataset), added)
    files = [f"{root}/{file.path}" if root else file.path for file in added]
    schemas = [pq.read_schema(file, filesystem=file_system) for file in files]
    read = []
    for file, schema, partition in zip(files, schemas, (file.partition for file in added), strict=True):
        rows = pq.read_table(
            file,
            columns=[c for c in columns if c in schema.names and c not in dict(partition)],
            filesystem=file_system,
            partitioning=None,
            page_checksum_verification=True,
        )
        for column, value in partition:
            if column in columns:
                rows = rows.append_column(column, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
        read.append(rows)
    table = pa.concat_tables(read, promote_options="permissive") if read else pa.table({})
    missing = [c for c in columns if c not in table.column_names]
    for column in missing:
        table = table.append_column(column, pa.nulls(table.num_rows))
    return table.select(list(columns))


def scan_added(
    lake: Lake, dataset: str, after: int, upto: int, columns: Sequence[str]
) -> Iterator[tuple[int, pa.Table]]:
    """Some columns of those rows, a batch at a time, each with its version. Without Spark."""
    root = lake.table(dataset)
    file_system, folder = open_folder(root)
    for entry in read_entries(root, after):
        if entry.version > upto or not entry.changes_rows:
            continue
        require_sound_files(root, entry.added)
        for file in entry.added:
            path = f"{folder}/{file.path}" if folder else file.path
            rows = pq.ParquetFile(path, filesystem=file_system, page_checksum_verification=True)
            for batch in rows.iter_batches(columns=list(columns)):
                yield entry.version, pa.table(batch)


def _added_files(root: str, after: int, upto: int) -> list[AddedFile]:
    return [f for e in read_entries(root, after) if e.version <= upto and e.changes_rows for f in e.added]


def read_feed(session: SparkSession, lake: Lake, dataset: str, after: int, upto: int) -> DataFrame:
    """Live rows that left and came between two versions, from Delta's change feed.

    They are netted on declared columns, so that rewrites which only change the rank vanish.
    """
    feed = (
        session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", after + 1)
        .option("endingVersion", upto)
        .load(lake.table(dataset))
    )
    kind = F.col("_change_type")
    sign = F.when(kind.isin("insert", "update_postimage"), F.lit(1)).otherwise(F.lit(-1))
    rows = feed.withColumn(SIGN, sign)
    if DELETED in feed.columns:
        rows = rows.where(~F.col(DELETED))
    return net(rows.drop("_change_type", "_commit_version", "_commit_timestamp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Rows of the change feed as the commits left them, deleted ones among them. The others are SQL."""

    rows: DataFrame
    came: str
    version: str
    committed_at: str


def read_commits(session: SparkSession, lake: Lake, dataset: str, versions: Sequence[int]) -> Feed:
    """What some commits changed, each on its own, from Delta's change feed."""
    feed = (
        session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", versions[0])
        .option("endingVersion", versions[-1])
        .load(lake.table(dataset))
    )
    quiet = sorted(set(range(versions[0], versions[-1])) - set(versions))
    rows = feed.where(~F.col("_commit_version").isin(quiet)) if quiet else feed
    came = "__change_type IN ('insert', 'update_postimage')"
    columns = {name: f"_{name}" for name in ("_change_type", "_commit_version", "_commit_timestamp")}
    return Feed(
        rows=rows.withColumnsRenamed(columns),
        came=came,
        version="__commit_version",
        committed_at="__commit_timestamp",
    )


def net(rows: DataFrame) -> DataFrame:
    """Cancel rows that left and came again with the same declared columns.

    Keeps declared columns and the sign.
    """
    declared = declared_columns(rows)
    maps = {c: f"__group{i}" for i, c in enumerate(declared) if holds_map(rows.schema[c].dataType)}
    groups = [
        groupable(F.col(quote(c)), rows.schema[c].dataType).alias(maps[c]) if c in maps else F.col(quote(c))
        for c in declared
    ]
    first_maps = [F.first(quote(c)).alias(c) for c in maps]  # maps are equal in whatever order of entries
    net_rows = (
        rows.groupBy(*groups).agg(*first_maps, F.sum(SIGN).cast("int").alias(SIGN)).where(F.col(SIGN) != 0)
    )
    return net_rows.select(*(quote(c) for c in declared), SIGN)


def declared_columns(rows: DataFrame) -> list[str]:
    """The columns that users declared: everything but metadata and the sign."""
    return [c for c in rows.columns if c not in METADATA_COLUMNS and c != SIGN]
