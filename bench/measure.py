"""One measured thing: seconds, Spark jobs, and where the engine says its time went."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    seconds: float
    cpu_seconds: float = 0.0
    """Of this process, its JVM and Spark's Python workers. Others on the machine do not change it."""
    jobs: int = 0
    """Spark jobs started meanwhile; a job costs tens of milliseconds however little it does."""
    by_node: Mapping[str, float] = field(default_factory=dict)
    """Of an engine's run: seconds per node."""


def measure(session: SparkSession | None, work: Callable[[], Mapping[str, float] | None]) -> Sample:
    """Do it once and say how long it took."""
    before = count_jobs(session)
    started, cpu_before = time.monotonic(), count_cpu_seconds()
    by_node = work() or {}
    return Sample(
        seconds=time.monotonic() - started,
        cpu_seconds=count_cpu_seconds() - cpu_before,
        jobs=count_jobs(session) - before,
        by_node=by_node,
    )


def count_cpu_seconds() -> float:
    """CPU seconds of this process and of those it started, directly or not. Linux only, elsewhere 0."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        pid = int(file.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(ticks[pid] for pid in ticks if _descends(pid, parents)) / os.sysconf("SC_CLK_TCK")


def _descends(pid: int, parents: Mapping[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def count_jobs(session: SparkSession | None) -> int:
    """Jobs that this process's Spark has started so far."""
    if session is None:
        return 0
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def median(samples: list[Sample]) -> float:
    """The middle one; of an even number the quicker of the two middle ones, whoever was measured."""
    return statistics.median_low(s.seconds for s in samples)


def middle(samples: list[Sample]) -> Sample:
    """The sample that `median` names."""
    wanted = median(samples)
    return next(s for s in samples if s.seconds == wanted)


def find_last_stage(session: SparkSession) -> int:
    """The number of the last stage that this process's Spark has begun. -1 before the first."""
    return max((stage.stageId() for stage in list_stages(session)), default=-1)


def count_rows_read(session: SparkSession, after: int) -> int:
    """Rows that scans have read in stages after one, by the metrics of the stages.

    Spark keeps those of the last thousand stages, which is more than a run has.
    """
    return sum(stage.inputRecords() for stage in list_stages(session) if stage.stageId() > after)


def list_stages(session: SparkSession) -> list[Any]:
    gateway = session.sparkContext._gateway
    assert gateway is not None
    no_quantiles = gateway.new_array(gateway.jvm.double, 0)
    store = session.sparkContext._jsc.sc().statusStore()
    return _listed(store.stageList(None, False, False, no_quantiles, None))


def show_paths(session: SparkSession) -> None:
    """Let the sessions that Spark opens from now on keep whole paths in what they say about scans."""
    session.sparkContext._jsc.sc().conf().set("spark.sql.maxMetadataStringLength", "1000")


def find_last_execution(session: SparkSession) -> int:
    """The number of the last query that this process's Spark has begun. -1 before the first."""
    return max((query.executionId() for query in _listed(_queries(session).executionsList())), default=-1)


def count_table_rows(session: SparkSession, after: int) -> int:
    """Rows of tables that scans have read in queries after one.

    What a run computed and staged is left out. Rows that delta-rs found and put into a file for Spark are
    counted as Spark reads that file.
    """
    store, rows = _queries(session), 0
    for query in _listed(store.executionsList()):
        if query.executionId() <= after:
            continue
        values = store.executionMetrics(query.executionId())
        for node in _listed(store.planGraph(query.executionId()).allNodes()):
            if not node.name().startswith("Scan parquet") or not _is_of_table(node.desc()):
                continue
            for metric in _listed(node.metrics()):
                value = values.get(metric.accumulatorId())
                if metric.name() == "number of output rows" and value.isDefined():
                    rows += int(value.get().replace(",", ""))
    return rows


def _is_of_table(scan: str) -> bool:
    """Whether a scan reads a table, or a file with what delta-rs found in one."""
    if "/_delta_log" in scan:
        return False
    _, staged, path = scan.partition("/_staging/")
    return not staged or path.partition("]")[0].endswith(".parquet")


def _queries(session: SparkSession) -> Any:
    return session._jsparkSession.sharedState().statusStore()


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(nth) for nth in range(sequence.size())]
