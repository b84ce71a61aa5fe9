"""Every fact about one key: when it happened, when it was learnt, which one won, and its table version.

Starts no Spark.
"""

import argparse
from pathlib import Path

from strandline.app.history import Fact, History, read_history
from strandline.app.reading import open_reading
from strandline.pages.wording import instant, moment, plural

from .output import emit, say
from .tables import as_text, render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a fact dataset")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the values of its key, in the key's order")


def run(call: argparse.Namespace) -> int:
    history = read_history(open_reading(Path(call.project)), call.dataset, call.key)
    emit(
        call.output,
        "history",
        {"facts": [_fact(f) for f in history.facts]},
        "facts",
        lambda: render_history(history),
    )
    if not history.facts:
        say(f"There is no fact about {_key(history)} in `{history.dataset}`.")
    return 0 if history.facts else 1


def _fact(fact: Fact) -> dict[str, object]:
    return {
        "source_at": fact.source_at,
        "source_ts": fact.source_ts,
        "ingested_at": fact.ingested_at,
        "source_position": list(fact.source_position),
        "table_version": fact.table_version,
        "deleted": fact.deleted,
        "won": fact.won,
        "row": dict(fact.row),
    }


def render_history(history: History) -> str:
    """A line per fact with the columns that differ between them. What is the same in all is shown once."""
    if not history.facts:
        return f"{history.dataset} {_key(history)}: no facts."
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
    lines = [
        f"{plural(len(history.facts), 'fact')} about {history.dataset} {_key(history)}, lowest rank first:",
        "",
    ]
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


def _key(history: History) -> str:
    return ", ".join(f"{name} = {as_text(value)}" for name, value in history.key.items())
