"""The engine's peers. Each reads the same Parquet facts and writes the newest fact of every key.

Deleted keys are kept as rows, so that all results hold the same rows. `live_only` leaves them out, which a
recompute without state may do.
"""

from datetime import UTC, datetime
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from .register import COLUMNS, KEY, ORDER, THREADS


def open_plain(session: SparkSession) -> SparkSession:
    """A session of the same process without the engine's settings for small commits."""
    plain = session.newSession()
    for name in ("spark.sql.shuffle.partitions", "spark.sql.files.maxRecordsPerFile"):
        plain.conf.unset(name)
    plain.conf.set("spark.sql.shuffle.partitions", "8")
    plain.conf.set("spark.sql.files.maxRecordsPerFile", "0")
    return plain


def read_facts(session: SparkSession, *paths: Path) -> DataFrame:
    rows = session.read.parquet(*(str(p) for p in paths))
    return rows.select(*(F.col(c).cast("timestamp") if c == "snapshot_at" else F.col(c) for c in COLUMNS))


def newest(rows: DataFrame) -> DataFrame:
    by_order = Window.partitionBy(*KEY).orderBy(F.col(ORDER).desc())
    return rows.withColumn("_nth", F.row_number().over(by_order)).where("_nth = 1").drop("_nth")


def recompute_with_pyspark(
    session: SparkSession, facts: Path, target: Path, *, live_only: bool = False, for_merge: bool = False
) -> None:
    """Read every fact, take the newest per key, overwrite a Delta table."""
    rows = newest(read_facts(session, facts))
    if live_only:
        rows = rows.where("op <> 'D'")
    writer = rows.write.format("delta").mode("overwrite")
    if for_merge:
        writer = writer.option("delta.enableDeletionVectors", "true")
    writer.save(str(target))


def merge(session: SparkSession, files: list[Path], target: Path) -> None:
    """Delta's MERGE of an increment, as its documentation writes it.

    Deleted keys stay as rows. Without them a late fact would bring a deleted key back.
    """
    newest(read_facts(session, *files)).createOrReplaceTempView("increment")
    session.sql(
        f"""
        MERGE INTO delta.`{target}` t USING increment s
        ON {" AND ".join(f"t.{c} = s.{c}" for c in KEY)}
        WHEN MATCHED AND s.{ORDER} > t.{ORDER} THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
        """
    )


def recompute_with_duckdb(facts: Path, target: Path, *, live_only: bool = False) -> None:
    """The same full recompute in DuckDB, written as Parquet."""
    columns = [f"arg_max(f, {ORDER}) AS f"]
    live = "WHERE f.op <> 'D'" if live_only else ""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute(
            f"""
            COPY (
                SELECT unnest(f) FROM (
                    SELECT {", ".join(columns)} FROM (SELECT * FROM '{facts}/*.parquet') f
                    GROUP BY {", ".join(f"f.{c}" for c in KEY)}
                ) {live}
            ) TO '{target}' (FORMAT parquet)
            """
        )


class Script:
    """A hand-written PySpark script that makes the engine's writes.

    It writes tables of the same shape: received rows, facts and changed keys. It knows only this register,
    trusts its input and keeps no record: no plan, lease, fence, checks, counts, quarantine or catalog.
    """

    def __init__(
        self, session: SparkSession, *, received: Path, facts: Path, snapshot: Path, staging: Path
    ) -> None:
        self._session = session
        self._received, self._facts, self._snapshot, self._staging = (
            str(received),
            str(facts),
            str(snapshot),
            str(staging),
        )
        self._columns = {
            path: session.read.format("delta").load(path).columns
            for path in (self._received, self._facts, self._snapshot)
        }

    def run(self, file: Path) -> None:
        rows = self._receive(file)
        self._append(rows, self._received)
        facts = self._decode(rows)
        self._append(facts, self._facts)
        self._replace(newest(facts))

    def _receive(self, file: Path) -> DataFrame:
        place = F.struct(
            F.lit(f"data/{file.name}").alias("name"),
            F.lit(0).cast("bigint").alias("part"),
            (F.col("_metadata.row_index") + 1).alias("place"),
        )
        rows = self._session.read.parquet(str(file)).select("*", place.alias("_source_position"))
        return rows.withColumns(
            {
                "snapshot_at": F.col("snapshot_at").cast("timestamp"),
                "_payload": F.lit(None).cast("string"),
                "_ingested_at": F.lit(datetime.now(UTC)),
            }
        )

    def _decode(self, rows: DataFrame) -> DataFrame:
        return rows.withColumns(
            {
                "_source_at": F.col("snapshot_at"),
                "_source_ts": F.unix_micros("snapshot_at"),
                "_deleted": F.col("op") == "D",
                "_key": F.xxhash64(*(part for c in KEY for part in (F.col(c), F.col(c).isNull()))),
                "_config": F.lit("script"),
            }
        )

    def _append(self, rows: DataFrame, path: str) -> None:
        rows.select(*self._columns[path]).write.format("delta").mode("append").save(path)

    def _replace(self, best: DataFrame) -> None:
        """Replace the keys whose staged fact is newer than the snapshot's row.

        The rows are staged first, so that Spark knows the size of the source. Otherwise it would sort the
        whole table.
        """
        current = (
            self._session.read.format("delta")
            .load(self._snapshot)
            .select("_key", F.col(ORDER).alias("_current"))
        )
        current = current.join(F.broadcast(best.select("_key")), "_key", "left_semi")
        newer = best.join(current, "_key", "left").where(
            F.col("_current").isNull() | (F.col(ORDER) > F.col("_current"))
        )
        staged = newer.select(*self._columns[self._snapshot])
        staged.write.mode("overwrite").parquet(self._staging)
        rows = self._session.read.schema(staged.schema).parquet(self._staging).alias("s")
        writer = (
            rows.write.format("delta")
            .mode("overwrite")
            .option("replaceOn", "t._key = s._key")
            .option("targetAlias", "t")
        )
        writer.save(self._snapshot)


def fingerprint(rows: DataFrame) -> tuple[int, int]:
    """How many rows, and a hash of all of them that does not depend on their order."""
    typed = rows.select(*(F.col(c).cast("timestamp") if c == "snapshot_at" else F.col(c) for c in COLUMNS))
    row = typed.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor(F.xxhash64(*COLUMNS)).alias("hash")).first()
    assert row is not None
    return row["rows"], row["hash"]
