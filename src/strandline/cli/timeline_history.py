"""How the history of one key of a timeline is shown: its facts in folding order, and its epochs."""

from collections.abc import Mapping

from strandline.app.timeline_history import Epoch, TimelineHistory
from strandline.pages.wording import moment, plural

from .tables import as_text, render_table

_WHY = {
    "new_input": "new rows",
    "new_node": "first build",
    "invalidation": "an invalidation",
    "gap": "a rebuild, because the log of an input had a gap",
    "configuration": "another configuration",
    "schedule": "a batch that an earlier run had left",
    "clock": "a later as_of",
    "person": "a backfill",
}
"""Causes in words. The inputs that had moved follow."""


def render(history: TimelineHistory) -> str:
    """The key and its state, a line per fact with the fields after each date, a line per epoch."""
    return "\n".join([_describe_state(history), "", *_facts(history), "", *_epochs(history)])


def describe_key(key: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {as_text(value)}" for name, value in key.items())


def _describe_state(history: TimelineHistory) -> str:
    name, state = f"{history.timeline} {describe_key(history.key)}", history.state
    if state is None:
        return f"{name}: not in `{history.dataset}` yet."
    complete = f", complete up to {state.watermark_on}" if state.watermark_on else ""
    reason = f": {state.reason}" if state.reason else ""
    return f"{name}: {state.status}{complete}, epoch {state.epoch}{reason}."


def _facts(history: TimelineHistory) -> list[str]:
    facts = history.facts
    unplaced = plural(history.unplaced, "fact")
    without_date = [f"Not folded, because it has no date: {unplaced}."] if history.unplaced else []
    if not facts:
        return [f"There is no fact with a date in `{history.facts_of}`.", *without_date]
    rows = [fact.row for fact in facts if fact.row is not None]
    names = list(rows[-1]) if rows else []
    shown = [name for name in names if name not in history.key and name != history.date_column]
    values = {name: {as_text(row.get(name)) for row in rows} for name in shown}
    differing = [name for name, texts in values.items() if len(texts) > 1]
    same = [f"{name} = {texts.pop()}" for name, texts in values.items() if len(texts) == 1]
    lines = [
        f"{plural(len(rows), 'fact')} of `{history.facts_of}` in folding order, with the fields after each"
        " date:",
        "",
        render_table(
            ("date", *differing, *(f"{name} after" for name in history.fields)),
            [_line(history, place, differing) for place in range(len(facts))],
        ),
    ]
    return [*lines, *([f"The same in all: {', '.join(same)}."] if same else []), *without_date]


def _line(history: TimelineHistory, place: int, columns: list[str]) -> tuple[object, ...]:
    """The fields stand beside the last fact of a date."""
    fact, following = history.facts[place], history.facts[place + 1 : place + 2]
    row = [""] * len(columns) if fact.row is None else [fact.row.get(name) for name in columns]
    fields: list[object] = [""] * len(history.fields)
    if not following or following[0].date != fact.date:
        values = fact.fields
        fields = ["not folded", *fields[1:]] if values is None else [values[name] for name in history.fields]
    return (str(fact.date), *row, *fields)


def _epochs(history: TimelineHistory) -> list[str]:
    if not history.epochs:
        return [f"Nothing that was published of it in `{history.dataset}` was ever restated."]
    rows = [
        (
            epoch.epoch,
            moment(epoch.committed_at or epoch.at),
            _why(epoch),
            str(epoch.first_on or ""),
            str(epoch.last_on or ""),
            epoch.rows,
            epoch.rows_now,
        )
        for epoch in history.epochs
    ]
    columns = ("epoch", "when", "why", "from", "to", "rows", "rows now")
    return [
        f"{plural(len(rows), 'epoch')} of it in `{history.dataset}`:",
        "",
        render_table(columns, rows),
    ]


def _why(epoch: Epoch) -> str:
    if not epoch.cause:
        return "the log does not tell any more"
    words = _WHY.get(epoch.cause, epoch.cause)
    return f"{words}: {', '.join(epoch.inputs)}" if epoch.inputs else words
