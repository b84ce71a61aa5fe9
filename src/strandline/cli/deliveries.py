"""What was sent to endpoints, what failed, and what waits. Events that were recorded meanwhile are added.

--send sends what is due and ends. --replay and --since owe deliveries again that ended: with the same ids and
the same bytes. They are then sent by --send, or in the same call with it. Secrets are read by --send alone.
"""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from strandline.app.clock import parse_instant
from strandline.app.deliveries import DeliveriesOutcome, DeliveriesRequest, show_deliveries
from strandline.app.workspace import open_workspace
from strandline.model.deliveries import DeliveryRecord
from strandline.pages.documents.deliveries import count_sent, deliveries_document
from strandline.pages.wording import moment, plural

from .output import emit, say
from .requests import at_least_one
from .tables import render_table

LISTED = 20
"""At most this many are listed for people by default. JSON and CSV contain all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--endpoint", metavar="E", help="only those to this endpoint")
    parser.add_argument("--trigger", metavar="T", help="only those of this trigger")
    parser.add_argument("--dead", action="store_true", help="only those that are no longer tried")
    parser.add_argument("--send", action="store_true", help="send what is due, and end")
    parser.add_argument(
        "--enable",
        action="store_true",
        help="with --endpoint: send to it again, after it was disabled; what was held is due",
    )
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--replay", metavar="ID", help="owe this delivery again")
    again.add_argument(
        "--since",
        metavar="T",
        help="owe again what ended of all that was recorded from then on; also with --dead, --endpoint or"
        " --trigger",
    )
    parser.add_argument("--until", metavar="T", help="with --since: before this time")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=at_least_one,
        help=f"list at most N; by default {LISTED}, in JSON and CSV all",
    )


def run(call: argparse.Namespace) -> int:
    request = DeliveriesRequest(
        endpoint=call.endpoint,
        trigger=call.trigger,
        dead=call.dead,
        send=call.send,
        enable=call.enable,
        replay=call.replay,
        since=_instant(call.since),
        until=_instant(call.until),
        limit=LISTED if call.limit is None and call.output == "table" else call.limit,
    )
    with open_workspace(Path(call.project)) as workspace:
        outcome = show_deliveries(workspace, request)
    emit(
        call.output,
        "deliveries",
        deliveries_document(outcome),
        "deliveries",
        lambda: render_deliveries(outcome),
    )
    for error in outcome.refused:
        say(str(error))
    return outcome.exit_code


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)


def render_deliveries(outcome: DeliveriesOutcome) -> str:
    lines = [*_done(outcome), *_counts(outcome)]
    if outcome.deliveries:
        columns = ("delivery", "event", "trigger", "key", "status", "attempts", "when", "error")
        cells = [_row(record) for record in outcome.deliveries]
        lines += ["", render_table(columns, cells, wrap_last=True)]
        listed = len(outcome.deliveries)
        if listed < outcome.matching:
            lines += ["", f"The newest {listed:,} of {outcome.matching:,} are listed; `--limit N` lists N."]
    below = [*_endpoints(outcome), *outcome.filled.lines]
    return "\n".join([*lines, *([""] if below else []), *below])


def _done(outcome: DeliveriesOutcome) -> Iterator[str]:
    """What this call did."""
    if outcome.cancelled:
        verb = "was" if outcome.cancelled == 1 else "were"
        yield f"{plural(outcome.cancelled, 'delivery')} to endpoints that are gone {verb} cancelled."
    if outcome.enabled is not None:
        yield f"The endpoint is enabled; {outcome.enabled:,} that were held are due."
    if outcome.replayed is not None:
        yield f"{plural(outcome.replayed, 'delivery')} owed again."
    if outcome.sent is not None:
        sent = count_sent(outcome)
        if not sent:
            yield "Nothing was due."
        for endpoint, counts in sent.items():
            yield f"{endpoint}: {', '.join(f'{count:,} {word}' for word, count in counts.items())}."


def _counts(outcome: DeliveriesOutcome) -> Iterator[str]:
    if not outcome.counts:
        yield "There is no delivery."
        return
    total = sum(outcome.counts.values())
    words = ", ".join(f"{count:,} {status}" for status, count in outcome.counts.items())
    yield f"{plural(total, 'delivery')}: {words}."


def _row(record: DeliveryRecord) -> tuple[object, ...]:
    when = record.ended_at or record.next_at or record.created_at
    return (
        record.id,
        record.event_type,
        record.trigger,
        record.key,
        str(record.status),
        record.attempts,
        moment(when),
        record.error,
    )


def _endpoints(outcome: DeliveriesOutcome) -> Iterator[str]:
    for state in outcome.troubled:
        if state.disabled:
            yield (
                f"{state.endpoint} is disabled: {state.disabled} What comes is held."
                f" `strandline deliveries --endpoint {state.endpoint} --enable` sends to it again."
            )
        else:
            since = f" since {moment(state.failing_since)}" if state.failing_since else ""
            yield f"{state.endpoint} has failed{since}; one delivery a minute is tried, the others wait."
