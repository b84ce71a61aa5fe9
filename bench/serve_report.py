"""The lines and the figures to reach of serving."""

from collections.abc import Iterator
from dataclasses import dataclass

from .served_runs import ServedRuns, served_lines
from .subscribers import CHANGES, CLIENTS, MANY, OPEN, OPERATIONS, TIMES, Subscribers
from .target import Target

A_SECOND = 10_000.0
SECONDS = 15.0
MEGABYTES = 150.0
TO_WEBHOOK, HANDED = 5.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    subscribers: Subscribers
    runs: ServedRuns


def serve_lines(served: Served) -> Iterator[str]:
    yield from served_lines(served.runs)
    found = served.subscribers
    yield (
        f"{CLIENTS} clients, {OPERATIONS} operations {TIMES} times: {found.messages:,} messages"
        f" in {found.seconds:.2f} s"
    )
    yield (
        f"{MANY:,} subscribers, {CHANGES} changes: {found.many_messages:,} messages in"
        f" {found.many_seconds:.1f} s; the server idle {found.idle_mb:.0f} MB, at most {found.peak_mb:.0f} MB"
    )
    yield f"subscribers that were told anything wrong: {found.inexact}"
    yield f"the one who never reads {found.never_read}"


def serve_targets(served: Served) -> Iterator[Target]:
    found, runs = served.subscribers, served.runs
    yield Target(
        text="fact to webhook, warm, one at a time: median",
        value=runs.median,
        bound=TO_WEBHOOK,
        at_least=False,
        unit=" s",
    )
    yield Target(
        text="`run` handed to a warm server, one line, from the shell",
        value=runs.handed,
        bound=HANDED,
        at_least=False,
        unit=" s",
        beside=f"alone {runs.cold_seconds:.1f} s, {runs.cold_seconds / runs.handed:.1f} times as long",
    )
    exact = "" if not found.inexact else f"{found.inexact} were inexact"
    rate = found.messages / found.seconds
    yield Target(
        text=f"{CLIENTS} clients, {OPERATIONS * TIMES:,} operations: messages a second",
        value=rate,
        bound=A_SECOND,
        at_least=True,
        unit="",
        note=exact,
    )
    closed = "" if found.never_read != OPEN else f"the one who never reads {OPEN}"
    yield Target(
        text=f"{MANY:,} subscribers of 10 conditions, {CHANGES} changes: the last has the last",
        value=found.many_seconds,
        bound=SECONDS,
        at_least=False,
        unit=" s",
        note=exact or closed,
    )
    yield Target(
        text="  memory of the server above idle",
        value=found.peak_mb - found.idle_mb,
        bound=MEGABYTES,
        at_least=False,
        unit=" MB",
    )
