"""What exactness costs at ingest: decoding JSON beside a plain `from_json`, and reading Parquet pages twice.

The decode keeps every digit, tells an absent value from one that does not fit, and finds two messages on one
line. `from_json` does none of that, so it is the least that any decode has to cost.

A Parquet file is read once before it is received, because a damaged page behind a sound footer would fail the
commit of all files of its task. The second reading is Spark's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.compute.facts.decode import decode
from strandline.ingest import parquet
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.project import FactDataset
from strandline.spark.session import get_session

from .engine import SILENT
from .overhead import Stopwatch
from .progress import say

MESSAGES = 300_000
ROWS = 1_000_000
ROUNDS = 3
WARM_UP = 1
PROJECT = """\
project: ingest_bench
settings:
  spark: {master: "local[2]", conf: {spark.driver.memory: 2g}}
sources:
  demand_events: {files: "messages/*.jsonl"}
  readings: {files: "data/*.parquet"}
datasets:
  demand:
    from: demand_events
    columns:
      tenant_id: tenantId
      demand_id: demand.id
      status: demand.status
      tax_amount: {path: demand.taxAmount, type: "decimal(18,2)"}
      collected: {path: demand.collectionAmount, type: "decimal(18,2)"}
      version: {path: demand.version, type: bigint, default: 0}
      paid: {path: demand.isPaymentCompleted, type: boolean}
      modified_at: {path: demand.auditDetails.lastModifiedTime, type: timestamp_ms}
    record_set: {key: [tenant_id, demand_id], order_by: [modified_at, version]}
"""
NAIVE_SCHEMA = (
    "tenantId string, demand struct<id string, status string, taxAmount decimal(18,2), "
    "collectionAmount decimal(18,2), version bigint, isPaymentCompleted boolean, "
    "auditDetails struct<lastModifiedTime bigint>>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    messages: int
    decode_cpu_seconds: list[float]
    """CPU seconds of the JVM for all messages, round by round."""
    naive_cpu_seconds: list[float]
    """The same for `from_json` with a schema, in turn with the decode."""
    parquet_rows: int
    source_seconds: list[float]
    """Seconds of the source's task for one Parquet file."""
    page_seconds: list[float]
    """Of these, seconds of the reading before Spark's."""

    @property
    def decode_ratio(self) -> float:
        return _middle(self.decode_cpu_seconds) / _middle(self.naive_cpu_seconds)

    @property
    def page_ratio(self) -> float:
        """The task's time over what it would be without the first reading."""
        pairs = zip(self.source_seconds, self.page_seconds, strict=True)
        return _middle([whole / (whole - pages) for whole, pages in pairs])


def measure_ingest(folder: Path) -> Ingest:
    """Decode the same messages in both ways in turn, then receive Parquet files one by one."""
    folder.mkdir(parents=True)
    (folder / "strandline.yaml").write_text(PROJECT)
    with open_workspace(folder) as workspace:
        session = get_session(workspace.project.settings)
        dataset = workspace.project.get("demand_facts").definition
        calendar = workspace.project.calendar
    if not isinstance(dataset, FactDataset):
        raise TypeError("`demand` is a fact dataset.")
    decoded, naive = _measure_decode(
        session, folder / "received", lambda received: decode(received, dataset, calendar)
    )
    source, pages = _measure_pages(session, folder)
    return Ingest(
        messages=MESSAGES,
        decode_cpu_seconds=decoded,
        naive_cpu_seconds=naive,
        parquet_rows=ROWS,
        source_seconds=source,
        page_seconds=pages,
    )


def _measure_decode(
    session: SparkSession, path: Path, decode_all: Callable[[DataFrame], DataFrame]
) -> tuple[list[float], list[float]]:
    say(f"{MESSAGES:,} JSON messages, decoded by the engine and by from_json")
    _make_messages(session).write.parquet(str(path))
    received = session.read.parquet(str(path))
    fields = F.from_json(PAYLOAD, NAIVE_SCHEMA).alias("message")
    decoded: list[float] = []
    naive: list[float] = []
    for nth in range(WARM_UP + ROUNDS):
        ours = _cpu_seconds(session, decode_all(received))
        theirs = _cpu_seconds(session, received.select(fields).select("message.tenantId", "message.demand.*"))
        if nth >= WARM_UP:
            decoded.append(ours)
            naive.append(theirs)
            say(f"  {ours:.1f} s of CPU, from_json {theirs:.1f} s")
    return decoded, naive


def _make_messages(session: SparkSession) -> DataFrame:
    """Messages like those of the example `property_tax`, in the columns of a source's table."""
    n = F.col("id")
    demand = F.struct(
        F.concat(F.lit("DM-"), n.cast("string")).alias("id"),
        F.lit("ACTIVE").alias("status"),
        (n % 900_000 / 100).cast("decimal(18,2)").alias("taxAmount"),
        (n % 700_000 / 100).cast("decimal(18,2)").alias("collectionAmount"),
        (n % 5).alias("version"),
        (n % 2 == 0).alias("isPaymentCompleted"),
        F.struct((1_704_000_000_000 + n).alias("lastModifiedTime")).alias("auditDetails"),
    )
    tenant = F.concat(F.lit("pb.town"), (n % 300).cast("string")).alias("tenantId")
    return session.range(MESSAGES).select(
        F.to_json(F.struct(tenant, demand.alias("demand"))).alias(PAYLOAD),
        F.struct(F.lit("messages/1.jsonl").alias("name"), F.lit(0).alias("part"), n.alias("place")).alias(
            POSITION
        ),
        F.timestamp_micros(F.lit(0)).alias(INGESTED_AT),
    )


def _cpu_seconds(session: SparkSession, rows: DataFrame) -> float:
    """CPU seconds of the JVM for computing every row and column."""
    before = _jvm_cpu_seconds(session)
    rows.write.format("noop").mode("overwrite").save()
    return _jvm_cpu_seconds(session) - before


def _jvm_cpu_seconds(session: SparkSession) -> float:
    gateway = session.sparkContext._gateway
    if gateway is None:
        raise RuntimeError("Spark has no JVM of its own here.")
    fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # user and system time, in hundredths of a second


def _measure_pages(session: SparkSession, folder: Path) -> tuple[list[float], list[float]]:
    say(f"Parquet files of {ROWS:,} rows, received one by one")
    source: list[float] = []
    pages: list[float] = []
    for nth in range(WARM_UP + ROUNDS):
        _make_file(session, folder, nth)
        watch = Stopwatch()
        with patch.object(parquet, "_read_pages", watch.around(parquet._read_pages)):
            seconds = _receive(folder)
        if nth >= WARM_UP:
            source.append(seconds)
            pages.append(watch.seconds)
            say(f"  {seconds:.1f} s, of these {watch.seconds:.2f} s for the first reading")
    return source, pages


def _make_file(session: SparkSession, folder: Path, nth: int) -> None:
    n = F.col("id") + nth * ROWS
    rows = session.range(ROWS).select(
        n.alias("reading_id"),
        F.concat(F.lit("station-"), (n % 1000).cast("string")).alias("station"),
        *(F.xxhash64(n, F.lit(i)).cast("double").alias(f"level_{i}") for i in range(5)),
        F.timestamp_micros(n * 1_000_000).alias("measured_at"),
    )
    written = folder / f"made_{nth}"
    rows.coalesce(1).write.option("maxRecordsPerFile", 0).parquet(str(written))
    (folder / "data").mkdir(exist_ok=True)
    next(written.glob("*.parquet")).rename(folder / "data" / f"{nth}.parquet")


def _receive(folder: Path) -> float:
    with open_workspace(folder) as workspace:
        outcome = run(workspace, RunRequest(select="readings"), SILENT)
    (result,) = outcome.results
    if outcome.exit_code or result.rows_written != ROWS:
        raise RuntimeError(f"{result.node}: {result.status}, {result.rows_written} rows, {result.error}")
    return result.seconds


def _middle(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
