"""Metrics in the text format of Prometheus, and those of timelines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.model.statuses import TimelineStatus

PREFIX = "strandline_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""
    """Of the name: `_sum`, `_count`, `_bucket`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    """Without the prefix."""
    type: str
    help: str
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfTimelines:
    name: str
    type: str
    help: str
    value: Callable[[TimelineStatus], float]


_TIMELINES = (
    _OfTimelines(
        name="reprocessing_active_keys_total",
        type="gauge",
        help="Keys whose past changed and that wait for a batch.",
        value=lambda t: t.keys.reprocessing,
    ),
    _OfTimelines(
        name="snapshot_lag_seconds",
        type="gauge",
        help="Seconds since the first business date was due that the lowest watermark does not reach.",
        value=lambda t: t.lag_seconds,
    ),
    _OfTimelines(
        name="epoch_mismatch_dropped_total",
        type="counter",
        help="Attempts whose commit was refused because a newer writer was there.",
        value=lambda t: t.dropped,
    ),
    _OfTimelines(
        name="scheduler_gap_days",
        type="gauge",
        help="Business dates due that the lowest watermark does not reach, of keys that did not fail.",
        value=lambda t: t.gap_days,
    ),
)


def make_timeline_metrics(timelines: Sequence[TimelineStatus]) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            name=metric.name,
            type=metric.type,
            help=metric.help,
            samples=tuple(
                Sample(value=metric.value(timeline), labels={"timeline": timeline.timeline})
                for timeline in timelines
            ),
        )
        for metric in _TIMELINES
    )


def render_metrics(metrics: Sequence[Metric]) -> str:
    """Each metric with its help and type, and one line per sample."""
    return "\n".join(line for metric in metrics for line in _render(metric))


def _render(metric: Metric) -> Iterator[str]:
    name = f"{PREFIX}{metric.name}"
    yield f"# HELP {name} {metric.help}"
    yield f"# TYPE {name} {metric.type}"
    for sample in metric.samples:
        labels = ",".join(f'{label}="{_escape(value)}"' for label, value in sample.labels.items())
        yield f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"
