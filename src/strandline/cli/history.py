"""Every fact about one key: when it happened, when it was learnt, which one won, and its table version.

Of a timeline: the facts of one key in folding order with the fields after each date, and its epochs: when,
why, from and to which date, how many rows. Starts no Spark.
"""

import argparse
from pathlib import Path

from strandline.app.history import Fact, History, read_history
from strandline.app.reading import open_reading
from strandline.app.timeline_history import TimelineHistory, find_folding, read_timeline_history
from strandline.pages.documents.history import history_document
from strandline.pages.documents.timeline_history import timeline_history_document
from strandline.pages.wording import instant, moment, plural

from . import timeline_history
from .output import emit, say
from .tables import as_text, render_table
from .timeline_history import describe_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a fact dataset or a timeline")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the values of its key, in the key's order")


def run(call: argparse.Namespace) -> int:
    reading = open_reading(Path(call.project))
    if folding := find_folding(reading.project, call.dataset):
        return _show_timeline(call, read_timeline_history(reading, call.dataset, folding, call.key))
    history = read_history(reading, call.dataset, call.key)
    emit(
        call.output,
        "history",
        history_document(history),
        "facts",
        lambda: render_history(history),
    )
    if not history.facts:
        say(f"There is no fact about {describe_key(history.key)} in `{history.dataset}`.")
    return 0 if history.facts else 1


def _show_timeline(call: argparse.Namespace, history: TimelineHistory) -> int:
    emit(
        call.output,
        "history",
        timeline_history_document(history),
        "facts",
        lambda: timeline_history.render(history),
    )
    known = bool(history.facts or history.state or history.unplaced)
    if not known:
        say(f"There is no fact about {describe_key(history.key)} in `{history.timeline}`.")
    return 0 if known else 1


def render_history(history: History) -> str:
    """A line per fact with the columns that differ between them. What is the same in all is shown once."""
    if not history.facts:
        return f"{history.dataset} {describe_key(history.key)}: no facts."
    names = [name for name in history.facts[-1].row if name not in history.key]
    differing = [name for name in names if len({as_text(f.row.get(name)) for f in history.facts}) > 1]
    same = [f"{name} = {as_text(history.facts[-1].row.get(name))}" for name in names if name not in differing]
    columns = ("", "happened", "learnt", "table version", "from", *differing)
    rows = [
        (
            _mark(f),
            instant(f.source_at),
            moment(f.ingested_at),
            _version(f),
            _place(f),
            *(f.row.get(n) for n in differing),
        )
        for f in history.facts
    ]
    about = f"{history.dataset} {describe_key(history.key)}"
    lines = [f"{plural(len(history.facts), 'fact')} about {about}, lowest rank first:", ""]
    lines += [render_table(columns, rows, right=("table version",))]
    if same:
        lines += ["", f"The same in all: {', '.join(same)}."]
    if not any(f.won for f in history.facts):
        lines += ["", f"None of them is in `{history.dataset}` now."]
    return "\n".join(lines)


def _mark(fact: Fact) -> str:
    return f"{'won' if fact.won else ''}{' deleted' if fact.deleted else ''}".strip()


def _version(fact: Fact) -> str:
    return "" if fact.table_version is None else str(fact.table_version)


def _place(fact: Fact) -> str:
    name, part, place = fact.source_position
    return f"{name}{f' ({part})' if part else ''}:{place}"
