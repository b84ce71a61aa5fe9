"""Where the time of a run goes, per node and step: seconds, JVM calls, Spark plans and jobs, bytes."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from py4j.clientserver import JavaClient
from pyspark import SparkContext
from pyspark.sql import SparkSession

from strandline.dispatch import failpoints
from strandline.lake import staging

from .measure import list_stages

STEPS: Mapping[str, str] = {
    "take": "take the lease, settle and pin the inputs",
    "build": "build the plan of what is computed, by calls to the JVM",
    "stage": "read, decode or compare, and stage the result, in one Spark job",
    "write": "commit",
    "confirm": "look for the commit in the log",
    "record": "record it in the catalog",
    "ahead": "read what later tasks will need",
    "rest": "what belongs to no node: load the project, plan, start Spark",
}
_BEGUN_BY = {
    "before-lease": "take",
    "before-prepare": "build",
    "before-write": "write",
    "before-confirm": "confirm",
    "before-record": "record",
    "after-record": "rest",
}
"""The failpoints of the dispatcher, and the step that each of them begins."""
_DESCRIPTION = "spark.job.description"


@dataclass(slots=True)
class Step:
    """Totals over all threads: what two nodes do at once counts for both."""

    seconds: float = 0.0
    calls: int = 0
    """Calls to the JVM."""
    plans: int = 0
    """Queries that Spark has planned."""
    jobs: int = 0
    written: int = 0
    """Bytes that Spark's jobs wrote. Delta's log is not among them."""

    def add(self, other: "Step") -> None:
        self.seconds += other.seconds
        self.calls += other.calls
        self.plans += other.plans
        self.jobs += other.jobs
        self.written += other.written


Place = tuple[str, str]
"""A node and a step. The node is empty for what belongs to none."""


@dataclass
class Steps:
    by_place: defaultdict[Place, Step] = field(default_factory=lambda: defaultdict(Step))
    _here: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def by_step(self) -> dict[str, Step]:
        sums = {name: Step() for name in STEPS}
        for (_, name), step in self.by_place.items():
            sums[name].add(step)
        return sums

    def place(self) -> Place:
        """What this thread does."""
        reads_ahead = threading.current_thread().name == "ahead"
        return getattr(self._here, "place", ("", "ahead" if reads_ahead else "rest"))

    def begin(self, node: str, step: str) -> None:
        """This thread does something else from now on."""
        now = time.perf_counter()
        began = getattr(self._here, "began", None)
        if began is not None:
            with self._lock:
                self.by_place[self.place()].seconds += now - began
        self._here.place, self._here.began = (node, step), now
        context = SparkContext._active_spark_context
        if context is not None:
            context.setLocalProperty(_DESCRIPTION, f"{node}/{step}")

    def around_reach(self, reach: Callable[[str, str], None]) -> Callable[[str, str], None]:
        def told(point: str, node: str) -> None:
            if point in _BEGUN_BY:
                step = _BEGUN_BY[point]
                self.begin(node if step != "rest" else "", step)
            reach(point, node)

        return told

    def around_stage(self, stage: Callable[..., Any]) -> Callable[..., Any]:
        def told(*given: Any, **named: Any) -> Any:
            node, step = self.place()
            self.begin(node, "stage")
            try:
                return stage(*given, **named)
            finally:
                self.begin(node, step)

        return told

    def around_call(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def told(client: JavaClient, *given: Any, **named: Any) -> Any:
            with self._lock:
                self.by_place[self.place()].calls += 1
            return send(client, *given, **named)

        return told

    def add_jobs(self, session: SparkSession, after: tuple[int, int]) -> None:
        """The jobs and queries since then, by what their thread did. Spark remembers a thousand of each."""
        after_job, after_plan = after
        stages = {stage.stageId(): stage for stage in list_stages(session)}
        for job in _jobs(session):
            if job.jobId() <= after_job:
                continue
            description = job.description()
            step = self.by_place[_read_place(description.get() if description.isDefined() else "")]
            step.jobs += 1
            numbers = job.stageIds()
            for nth in range(numbers.size()):
                done = stages.pop(numbers.apply(nth), None)
                step.written += done.outputBytes() if done else 0
        for plan in _plans(session):
            if plan.executionId() > after_plan:
                self.by_place[_read_place(plan.description())].plans += 1


def find_last(session: SparkSession | None) -> tuple[int, int]:
    """The numbers of Spark's last job and its last query. -1 before the first."""
    if session is None:
        return -1, -1
    return (
        max((job.jobId() for job in _jobs(session)), default=-1),
        max((plan.executionId() for plan in _plans(session)), default=-1),
    )


def _jobs(session: SparkSession) -> list[Any]:
    jobs = session.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [jobs.apply(nth) for nth in range(jobs.size())]


def _plans(session: SparkSession) -> list[Any]:
    plans = session._jsparkSession.sharedState().statusStore().executionsList()
    return [plans.apply(nth) for nth in range(plans.size())]


def _read_place(description: str) -> Place:
    node, _, step = description.partition("/")
    return (node, step) if step in STEPS else ("", "rest")


@contextmanager
def watch_steps() -> Iterator[Steps]:
    """Watch the runs of this process while the context is open."""
    from strandline.dispatch import workers  # all that runs is patched, so it has to be loaded

    assert workers
    steps = Steps()
    wrapped = (
        (failpoints.reach, steps.around_reach(failpoints.reach)),
        (staging.stage, steps.around_stage(staging.stage)),
    )
    with ExitStack() as patched:
        for function, told in wrapped:
            for name, module in list(sys.modules.items()):
                if name.startswith("strandline.") and vars(module).get(function.__name__) is function:
                    patched.enter_context(patch.object(module, function.__name__, told))
        send = steps.around_call(JavaClient.send_command)
        patched.enter_context(patch.object(JavaClient, "send_command", send))
        yield steps


def step_lines(steps: Mapping[Place, Step], *, by_node: bool) -> Iterator[str]:
    """A table of steps: one line for each of a node, or the sums of all nodes."""
    rows: dict[Place, Step] = {}
    for (node, name), step in steps.items():
        rows.setdefault((node if by_node else "", name), Step()).add(step)
    order = list(STEPS)
    yield f"  {'node':<26}{'step':<9}{'seconds':>8}{'calls':>7}{'plans':>6}{'jobs':>6}{'bytes':>11}"
    for (node, name), step in sorted(rows.items(), key=lambda row: (row[0][0], order.index(row[0][1]))):
        yield (
            f"  {node or '-':<26}{name:<9}{step.seconds:>8.2f}{step.calls:>7}{step.plans:>6}"
            f"{step.jobs:>6}{step.written:>11,}"
        )
