"""The one Spark session of a process, started only when there is work for it."""

import os
import sys
import threading
from typing import TYPE_CHECKING

from strandline.model.errors import OutsideError
from strandline.model.project import Settings

from . import archive
from .jars import find_jars, find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_LOST = "spark-lost"
"""The slug of an error after which nobody knows what Spark did."""
SMALL_WORK = 20_000
"""Rows up to which planning a query, compiling it and starting its tasks cost more than they do."""
_FOR_SMALL_WORK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Interpret, do not compile; one stage after the other in one job; one task a stage."""

_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=4000"
    " -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
"""Four times Java's thresholds for its second compiler: planning queries runs much code a little, and compiling it cost most of a run."""

_lock = threading.Lock()
_session: "SparkSession | None" = None
_small: "dict[frozenset[str], SparkSession]" = {}
"""By the settings a project says itself: the session that small tasks share."""


def _settings(cores: int) -> dict[str, str]:
    """What makes small commits quick and results the same everywhere, each with its reason."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # UTC in session and JVM (L11); without both Delta checks its checksum again on every small commit.
        "spark.sql.session.timeZone": "UTC",
        # A table's log is small here: more partitions only cost task launches.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.default.parallelism": str(max(2, cores)),
        # The change data feed carries a file's deletion vector as one string of at most 64 KiB: small files keep any change below it.
        "spark.sql.files.maxRecordsPerFile": "300000",
        # A staged increment must be broadcast, so that a write does not sort and shuffle the whole table.
        "spark.sql.autoBroadcastJoinThreshold": str(64 * 1024 * 1024),
        # Statistics are gathered from the files' footers by the writer; nothing reads the table-level ones.
        "spark.databricks.delta.stats.collect": "true",
        # More queries than the hundred that Spark keeps compiled: compiling one again costs as much as a commit.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # A list of all files beside each commit costs a job to start and spares none.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Nobody waits for the marker file of what is staged; each file made is two processes started.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # The driver's web page is not ours to show, and costs a second at start.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # Exact text of JSON numbers and nested values: a decimal keeps its digits.
        "spark.sql.json.enableExactStringParsing": "true",
        "spark.sql.json.enablePartialResults": "true",
        # Independent nodes run in parallel threads; a long one must not starve a short one.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
    }


def get_session(settings: Settings) -> "SparkSession":
    """Start Spark, or return the session this process already has."""
    global _session  # Spark itself allows one context a process; this is where that fact lives.
    with _lock:
        if _session is None:
            _session = start_session(settings)
        return _session


def fit_session(session: "SparkSession", settings: Settings, rows: int, *, own: bool) -> "SparkSession":
    """A session whose settings suit so many rows. `own`: its views and functions are nobody else's, as users' code needs it."""
    if rows > SMALL_WORK:
        return session.newSession() if own else session
    if own:
        return _open_small(session, settings)
    # Opening one costs as much as a small query: tasks that leave nothing behind in it share it.
    with _lock:
        names = frozenset(settings.spark_conf)
        if names not in _small:
            _small[names] = _open_small(session, settings)
        return _small[names]


def _open_small(session: "SparkSession", settings: Settings) -> "SparkSession":
    opened = session.newSession()
    for name, value in _FOR_SMALL_WORK.items():
        if name not in settings.spark_conf:
            opened.conf.set(name, value)
    return opened


def stop_session() -> None:
    """End Spark, if this process started it."""
    global _session
    with _lock:
        if _session is not None:
            _session.stop()
            _session = None
            _small.clear()


def _heap_gib() -> int:
    """In local mode everything runs in the driver: half of the machine's memory, 1 to 4 GiB. `settings.spark.conf` may say otherwise."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(4, total // (2 << 30)))


def start_session(settings: Settings, java_options: str | None = None) -> "SparkSession":
    """Start Spark. `java_options` stand in place of those that use the class-data archive."""
    home = find_java_home()
    if home is None:
        raise OutsideError(
            "Spark needs Java 17 and there is no `java` on this machine.",
            remedy="Install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME.",
            slug="java-missing",
        )
    jars = find_jars()
    if jars is None:
        raise OutsideError("Delta's jars are not in the cache.", remedy="Run `make setup`.", slug="jars-missing")
    # The workers must run the engine's own interpreter, with its packages.
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings.spark_master).appName("strandline")
    for name, value in _settings(os.cpu_count() or 2).items():
        builder = builder.config(name, value)
    class_path = os.pathsep.join(str(jar) for jar in jars)
    builder = builder.config("spark.driver.extraClassPath", class_path)
    if not settings.spark_master.startswith("local"):
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    options = archive.java_options(home) if java_options is None else java_options
    builder = builder.config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC {_COMPILE_LATER} {options}".strip())
    builder = builder.config("spark.driver.memory", f"{_heap_gib()}g")
    for name, value in settings.spark_conf.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise OutsideError(
            f"Spark did not start: {str(error).splitlines()[0]}",
            remedy="Run `strandline doctor`; look at the lines above.",
            slug="spark-start",
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session
