"""The figures of timelines in the text format of Prometheus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline.model.statuses import TimelineStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric:
    name: str
    type: str
    help: str
    value: Callable[[TimelineStatus], float]


_METRICS = (
    _Metric(
        name="strandline_reprocessing_active_keys_total",
        type="gauge",
        help="Keys whose past changed and that wait for a batch.",
        value=lambda t: t.keys.reprocessing,
    ),
    _Metric(
        name="strandline_snapshot_lag_seconds",
        type="gauge",
        help="Seconds since the first business date was due that the lowest watermark does not reach.",
        value=lambda t: t.lag_seconds,
    ),
    _Metric(
        name="strandline_epoch_mismatch_dropped_total",
        type="counter",
        help="Attempts whose commit was refused because a newer writer was there.",
        value=lambda t: t.dropped,
    ),
    _Metric(
        name="strandline_scheduler_gap_days",
        type="gauge",
        help="Business dates due that the lowest watermark does not reach, of keys that did not fail.",
        value=lambda t: t.gap_days,
    ),
)


def render_metrics(timelines: Sequence[TimelineStatus]) -> str:
    """Each metric with its help and type, and one line per timeline."""
    lines = []
    for metric in _METRICS:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.type}"]
        lines += [
            f'{metric.name}{{timeline="{_escape(t.timeline)}"}} {_number(metric.value(t))}' for t in timelines
        ]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"
