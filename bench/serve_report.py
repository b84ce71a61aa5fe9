"""The lines and the figures to reach of serving."""

from collections.abc import Iterator

from .subscribers import CHANGES, CLIENTS, MANY, OPEN, OPERATIONS, TIMES, Subscribers
from .target import Target

A_SECOND = 10_000.0
SECONDS = 15.0
MEGABYTES = 150.0


def serve_lines(found: Subscribers) -> Iterator[str]:
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


def serve_targets(found: Subscribers) -> Iterator[Target]:
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
