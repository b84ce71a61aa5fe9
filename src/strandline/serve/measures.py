"""What the server counts while it works. `/metrics` adds what the catalog and the lake tell.

Labels are names of the project, routes as they are declared, and status words: never a key, a row or a
secret. Any thread may count.
"""

import threading
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

from strandline.pages.prometheus import Metric, Sample

_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Of the buckets of times, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    name: str
    labels: tuple[str, ...]
    help: str
    type: str = "counter"


_COUNTED = (
    _Declared(name="runs_total", labels=("status",), help="Runs that ended."),
    _Declared(name="tasks_total", labels=("node", "status"), help="Tasks that ended."),
    _Declared(name="rows_read_total", labels=("node",), help="Rows that tasks read."),
    _Declared(name="rows_written_total", labels=("node",), help="Rows that tasks wrote."),
    _Declared(name="facts_received_total", labels=("source",), help="Messages received over HTTP."),
    _Declared(
        name="delivery_attempts_total",
        labels=("endpoint", "result"),
        help="Attempts to deliver: delivered, failed, dead or lost.",
    ),
    _Declared(name="subscribers", labels=("dataset",), help="Open subscriptions.", type="gauge"),
    _Declared(name="subscription_messages_total", labels=("dataset",), help="Messages sent to subscribers."),
    _Declared(
        name="slow_subscribers_total",
        labels=("dataset",),
        help="Subscribers that were closed because they fell behind.",
    ),
    _Declared(name="http_requests_total", labels=("route", "code"), help="Answered HTTP requests."),
)
_TIMED = (
    _Declared(name="task_seconds", labels=("node",), help="How long tasks took.", type="summary"),
    _Declared(
        name="fact_to_publish_seconds",
        labels=(),
        help="From the receipt of facts over HTTP to the end of the run that published them.",
        type="histogram",
    ),
    _Declared(
        name="delivery_seconds", labels=("endpoint",), help="How long attempts took.", type="histogram"
    ),
)

Labels = tuple[str, ...]


@dataclass(slots=True)
class _Times:
    """Durations: their number, their sum, and how many there are up to each bound."""

    number: int = 0
    total: float = 0.0
    buckets: list[int] | None = None

    def add(self, seconds: float) -> None:
        self.number += 1
        self.total += seconds
        if self.buckets is None:
            self.buckets = [0] * (len(_BOUNDS) + 1)
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1


class Measures:
    """Counts since the server was started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, defaultdict[Labels, float]] = {
            declared.name: defaultdict(float) for declared in _COUNTED
        }
        self._times: dict[str, defaultdict[Labels, _Times]] = {
            declared.name: defaultdict(_Times) for declared in _TIMED
        }

    def add(self, name: str, *labels: str, by: float = 1.0) -> None:
        """Count. `labels` are values in the order of the metric's labels."""
        with self._lock:
            self._counts[name][labels] += by

    def time(self, name: str, seconds: float, *labels: str) -> None:
        with self._lock:
            self._times[name][labels].add(seconds)

    def read(self) -> tuple[Metric, ...]:
        with self._lock:
            counted = [
                _metric(
                    declared,
                    [
                        Sample(value=value, labels=_label(declared, labels))
                        for labels, value in self._counts[declared.name].items()
                    ],
                )
                for declared in _COUNTED
            ]
            timed = [
                _metric(
                    declared,
                    [
                        sample
                        for labels, times in self._times[declared.name].items()
                        for sample in _time_samples(declared, _label(declared, labels), times)
                    ],
                )
                for declared in _TIMED
            ]
        return (*counted, *timed)


def _metric(declared: _Declared, samples: list[Sample]) -> Metric:
    return Metric(name=declared.name, type=declared.type, help=declared.help, samples=tuple(samples))


def _label(declared: _Declared, labels: Labels) -> dict[str, str]:
    return dict(zip(declared.labels, labels, strict=True))


def _time_samples(declared: _Declared, labels: dict[str, str], times: _Times) -> list[Sample]:
    samples = []
    if declared.type == "histogram":
        reached = 0
        bounds = (*(f"{bound:g}" for bound in _BOUNDS), "+Inf")
        for bound, number in zip(bounds, times.buckets or (), strict=True):
            reached += number
            samples.append(Sample(value=reached, labels={**labels, "le": bound}, suffix="_bucket"))
    return [
        *samples,
        Sample(value=times.total, labels=labels, suffix="_sum"),
        Sample(value=times.number, labels=labels, suffix="_count"),
    ]
