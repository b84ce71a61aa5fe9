"""The one Spark session of a process, started only when there is work for it."""

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from strandline.model.errors import OutsideError
from strandline.model.project import Settings

from .archive import java_options
from .jars import find_jars, find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_LOST = "spark-lost"
"""The slug of an error after which it is unknown what Spark did."""
_FOR_SMALL_WORK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Interpret instead of compiling; run stages one after the other in one job; one task per stage."""

_FOR_FEW_CHANGES = {"spark.sql.adaptive.enabled": "false"}
"""Adaptive planning needs one job per stage, and where few rows change the jobs are the cost.

Tables are still read by compiled code.
"""

_FOR_MANY_VARIABLES = {"spark.sql.constraintPropagation.enabled": "false"}
"""Do not derive conditions from what each column of a projection is computed of.

Spark compares each column with every other one, in each step of a plan: at 400 columns that took minutes. The
conditions only find rows earlier, and where a NULL cannot be joined. Queries of users keep them, however many
columns they have.
"""

_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=4000"
    " -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
"""Four times Java's thresholds for its second compiler.

Planning queries runs much code a few times, and compiling it took most of a run.
"""

_COLLECT_AT_ONCE = "-XX:+UseParallelGC -XX:MetaspaceSize=128m"
"""Java's default collector works beside the program, on cores that a run cannot spare.

Spark loads more classes than Java expects: without the size, it collects everything twice while they load.
"""

_IN_ONE_PROCESS = {
    # Hadoop's own starts a process for each permission it sets and each link it looks for: dozens per commit.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # The same reason holds for a table's log and its checksums. One JVM writes a lake of files, so its lock
    # is enough to keep commits apart (ADR 8).
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings where driver and tasks are one process, and files are this machine's."""

_lock = threading.Lock()
_session: "SparkSession | None" = None
_fitted: "dict[frozenset[tuple[str, str]], SparkSession]" = {}
"""The sessions that tasks share, by their settings."""


def _settings(cores: int) -> dict[str, str]:
    """What makes small commits quick and results the same everywhere, each with its reason."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # UTC in session and JVM (L11). Without both, Delta checks its checksum again on every small commit.
        "spark.sql.session.timeZone": "UTC",
        # `${env:NAME}` in SQL would be filled from the environment, and no hash would notice a change.
        "spark.sql.variable.substitute": "false",
        # A table's log is small here: more partitions would only cost task launches.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.default.parallelism": str(max(2, cores)),
        # The change data feed carries a file's deletion vector as one string of at most 64 KiB. Small files
        # keep any change below that.
        "spark.sql.files.maxRecordsPerFile": "300000",
        # Otherwise Spark sorts the rows of a partitioned table by partition, and the order in which we write
        # them is lost. Outputs of timelines have three partitions.
        "spark.sql.maxConcurrentOutputFileWriters": "8",
        # Rows of few keys are found by the least and greatest value in each page of a file.
        "spark.hadoop.parquet.page.row.count.limit": "5000",
        # A staged increment must be broadcast, so that a write does not sort and shuffle the whole table.
        "spark.sql.autoBroadcastJoinThreshold": str(64 * 1024 * 1024),
        # The writer takes statistics from the files' footers; nothing reads the table-level ones.
        "spark.databricks.delta.stats.collect": "true",
        # More queries than the hundred that Spark keeps compiled: compiling one again costs as much as a
        # commit.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # A list of all files beside each commit costs a job at the start and saves none.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Nobody waits for the marker file of what is staged.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # Recording where in Python each column was made takes two more JVM calls per column. Errors name a
        # wrong column without it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Delta refuses versions older than a week, although `maintain` may have kept their files. Our own
        # error says what is gone.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        # We do not show the driver's web page, and it costs a second at start.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # The exact text of JSON numbers and nested values: a decimal keeps its digits.
        "spark.sql.json.enableExactStringParsing": "true",
        "spark.sql.json.enablePartialResults": "true",
        # Independent nodes run in parallel threads, and a long one must not starve a short one.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
    }


def get_session(settings: Settings) -> "SparkSession":
    """Start Spark, or return the session this process already has."""
    global _session  # Spark itself allows one context per process, and this variable reflects that
    with _lock:
        if _session is not None and not answers():
            _forget_session()
        if _session is None:
            _session = start_session(settings)
        return _session


def _forget_session() -> None:
    """Drop what is left of a session whose JVM died, so that PySpark starts another."""
    global _session
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    _session = None
    _fitted.clear()
    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def fit_session(
    session: "SparkSession",
    settings: Settings,
    rows: int,
    *,
    own: bool,
    changed: int | None = None,
    read: int = 0,
    variables: int = 0,
) -> "SparkSession":
    """A session whose settings suit this number of rows, `changed` of which have changed (None if unknown).

    `read`: about how many rows are read to follow them. `variables`: how many columns are aggregates that the
    engine itself writes. `own`: its views and functions are not shared, as users' code requires.
    """
    sizes = settings.thresholds
    few = changed is not None and changed <= sizes.interpreted_rows
    profile = _FOR_SMALL_WORK if rows <= sizes.interpreted_rows else _FOR_FEW_CHANGES if few else {}
    if variables > sizes.derived_columns:
        followed = rows if changed is None else max(changed, read)
        small = min(rows, followed) <= sizes.interpreted_variable_rows
        profile = (_FOR_SMALL_WORK if small else profile) | _FOR_MANY_VARIABLES
    fitting = {name: value for name, value in profile.items() if name not in settings.spark_conf}
    if own:
        return _open(session, fitting)
    if not fitting:
        return session
    # Opening a session costs as much as a small query, so tasks that leave nothing behind in it share it.
    with _lock:
        key = frozenset(fitting.items())
        if key not in _fitted:
            _fitted[key] = _open(session, fitting)
        return _fitted[key]


def _open(session: "SparkSession", settings: "dict[str, str]") -> "SparkSession":
    opened = session.newSession()
    for name, value in settings.items():
        opened.conf.set(name, value)
    return opened


def answers() -> bool:
    """Whether the JVM is running and accepts calls."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)  # set for a JVM that this process started
    if gateway is None or (process is not None and process.poll() is not None):
        return False
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return False
    return True


def is_started() -> bool:
    """Whether this process has a session whose JVM lives."""
    return _session is not None and answers()


def cancel_jobs() -> None:
    """Cancel everything that Spark is doing in this process. Nothing is started for that."""
    from py4j.protocol import Py4JError

    if _session is not None:
        with suppress(Py4JError, OSError):  # its JVM may be gone
            _session.sparkContext.cancelAllJobs()


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def _heap_gib() -> int:
    """In local mode everything runs in the driver: half of the machine's memory, 1 to 4 GiB.

    `settings.spark.conf` may override it.
    """
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(4, total // (2 << 30)))


def _is_one_process(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def driver_conf(declared: Mapping[str, str], archive_options: str) -> dict[str, str]:
    """The driver's settings.

    A project's Java options are added to ours, because results depend on Java's time zone.
    """
    conf = {"spark.driver.memory": f"{_heap_gib()}g", **declared}
    options = (
        conf.get(_JAVA_OPTIONS, ""),
        "-Duser.timezone=UTC",
        _COLLECT_AT_ONCE,
        _COMPILE_LATER,
        archive_options,
    )
    return {**conf, _JAVA_OPTIONS: " ".join(options).strip()}


def start_session(settings: Settings, java_flags: str | None = None) -> "SparkSession":
    """Start Spark. `java_flags` replace those that use the class-data archive."""
    home = find_java_home()
    if home is None:
        raise OutsideError(
            "Spark needs Java 17 and there is no `java` on this machine.",
            remedy="Install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless)"
            " or set JAVA_HOME.",
            slug="java-missing",
        )
    jars = find_jars()
    if jars is None:
        raise OutsideError(
            "Delta's jars are not in the cache.", remedy="Run `make setup`.", slug="jars-missing"
        )
    # The workers must run the engine's own interpreter, with its packages.
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings.spark_master).appName("strandline")
    for name, value in _settings(os.cpu_count() or 2).items():
        builder = builder.config(name, value)
    class_path = os.pathsep.join(str(jar) for jar in jars)
    builder = builder.config("spark.driver.extraClassPath", class_path)
    if _is_one_process(settings.spark_master):
        for name, value in _IN_ONE_PROCESS.items():
            builder = builder.config(name, value)
    else:
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    options = java_options(home) if java_flags is None else java_flags
    for name, value in driver_conf(settings.spark_conf, options).items():
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
    _remember_functions(session)
    if _is_one_process(settings.spark_master):
        _drop_unused_settings(session)
    return session


_FUNCTIONS = [
    "array",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "count",
    "count_if",
    "explode",
    "expr",
    "greatest",
    "length",
    "lit",
    "max",
    "min",
    "row_number",
    "struct",
    "sum",
    "try_parse_json",
    "try_variant_get",
    "when",
    "xxhash64",
]
"""The functions of Spark that plans use most."""


def _remember_functions(session: "SparkSession") -> None:
    """Look Spark's functions up in the JVM once, and not each time that one is used.

    PySpark asks the JVM twice where a function is before it calls it. That was a quarter of all calls of a
    small run. Attributes that the view of the JVM has are not looked up.
    """
    jvm = session.sparkContext._jvm
    assert jvm is not None
    functions, utilities = jvm.org.apache.spark.sql.functions, jvm.PythonUtils
    for name in _FUNCTIONS:
        setattr(functions, name, getattr(functions, name))
    utilities.toSeq = utilities.toSeq
    known = {"functions": functions, "org.apache.spark.sql.functions": functions, "PythonUtils": utilities}
    vars(jvm).update(known)


def _drop_unused_settings(session: "SparkSession") -> None:
    """Drop the settings of YARN, which are half of Hadoop's eleven hundred.

    Every scan and every write of files sends all settings to its tasks. Hadoop reads the files of settings
    again when it first meets another one, so all of them are loaded before.
    """
    context = session.sparkContext
    jvm = context._jvm
    assert jvm is not None
    jvm.org.apache.hadoop.mapreduce.util.ConfigUtil.loadResources()
    jvm.org.apache.hadoop.hdfs.HdfsConfiguration.init()
    conf = context._jsc.hadoopConfiguration()
    for name in conf.getValByRegex(r"^yarn\.").keySet().toString()[1:-1].split(", "):
        conf.unset(name)
