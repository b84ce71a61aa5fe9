"""The lines and the figures to reach of publishing."""

from collections.abc import Iterator
from dataclasses import dataclass

from .published_runs import PublishedRuns
from .target import Target
from .webhooks import Webhooks

SECONDS = 60.0
A_SECOND = 200.0
MICROS = 20.0
ADDED_SECONDS = 1.5
NO_MORE = 1.2
"""Times of single runs differ by as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    webhooks: Webhooks
    runs: PublishedRuns


def publish_lines(found: Publish) -> Iterator[str]:
    webhooks, runs = found.webhooks, found.runs
    yield (
        f"{webhooks.events:,} events: filled in {webhooks.fill_seconds:.1f} s,"
        f" sent in {webhooks.send_seconds:.1f} s"
    )
    yield f"an event id {webhooks.id_micros:.1f} µs, a signature {webhooks.signature_micros:.1f} µs"
    both = f"{_list(runs.plain_seconds)} s; published {_list(runs.published_seconds)} s"
    yield f"one row of {runs.rows:,}: {both}"
    yield "  where its time goes: " + ", ".join(f"{node} {s:.2f}" for node, s in runs.by_node.items())
    yield (
        f"a trigger added to {runs.few_rows:,} rows: {_list(runs.few_seconds)} s;"
        f" to {runs.many_rows:,}: {_list(runs.many_seconds)} s"
    )


def publish_targets(found: Publish) -> Iterator[Target]:
    webhooks, runs = found.webhooks, found.runs
    text = f"{webhooks.events:,} events, from the table to the last answer"
    yield Target(text=text, value=webhooks.seconds, bound=SECONDS, at_least=False, unit=" s")
    rate = webhooks.events / webhooks.seconds
    yield Target(text="webhooks a second", value=rate, bound=A_SECOND, at_least=True, unit="")
    micros = webhooks.id_micros + webhooks.signature_micros
    yield Target(
        text="event id and signature together", value=micros, bound=MICROS, at_least=False, unit=" µs"
    )
    yield Target(
        text=f"one changed row of {runs.rows:,}: a change log and a trigger add",
        value=runs.added_seconds,
        bound=ADDED_SECONDS,
        at_least=False,
        unit=" s",
    )
    yield Target(
        text=f"adding a trigger to {runs.many_rows:,} rows, over {runs.few_rows:,}",
        value=runs.adding_ratio,
        bound=NO_MORE,
        at_least=False,
    )


def _list(seconds: tuple[float, ...]) -> str:
    return ", ".join(f"{one:.2f}" for one in seconds)
