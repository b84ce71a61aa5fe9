"""One measured thing: seconds, Spark jobs, and where the engine says its time went."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    seconds: float
    jobs: int = 0
    """Spark jobs started meanwhile; a job costs tens of milliseconds however little it does."""
    by_node: Mapping[str, float] = field(default_factory=dict)
    """Of an engine's run: seconds per node."""


def measure(session: SparkSession | None, work: Callable[[], Mapping[str, float] | None]) -> Sample:
    """Do it once and say how long it took."""
    before = count_jobs(session)
    started = time.monotonic()
    by_node = work() or {}
    seconds = time.monotonic() - started
    return Sample(seconds=seconds, jobs=count_jobs(session) - before, by_node=by_node)


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
