"""A timeline on a status page: a bar for each business date, and tables with the same content."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from strandline.model.key_states import CURRENT, DATE_STATES, FAILED, NOT_VALUED, REPROCESSING, DateKeys
from strandline.model.statuses import TimelineStatus
from strandline.pages.wording import describe_keys, plural, share

from .drawing import anchor, state_class
from .markup import Markup, element, join
from .strip import swatch

MOST_BARS = 270
"""A year of business dates has a bar for each."""
MOST_LISTED = 50
_WIDTH, _WIDEST, _HEIGHT, _LEAST = 1000, 20, 64, 3
"""The width of a drawing, the widest bar, the height of a bar, and the least height of a state in it."""
_MEANINGS = {
    CURRENT: "published, and nothing is known that would change it",
    REPROCESSING: "its past changed; the last published value stays until its batch",
    FAILED: "its fold raised, or a required reference has no row; the reason is in the timeline's state",
    NOT_VALUED: "due, and waits for the next run",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Business dates in a row on which the numbers are the same."""

    dates: tuple[DateKeys, ...]

    @property
    def text(self) -> str:
        first, last = self.dates[0].on, self.dates[-1].on
        return str(first) if first == last else f"{first} to {last}"


def show_timeline(status: TimelineStatus) -> Markup:
    """A section for a timeline."""
    title = anchor("timeline", status.timeline)
    heading = element("h3", status.timeline, id=f"{title}-title")
    of = element("a", status.dataset, href=f"#{anchor('dataset', status.dataset)}")
    parts = [heading, element("p", of, f": {describe_keys(status.keys)}.")]
    if status.dates:
        listed = element("div", _list_dates(status), class_="listed")
        parts += [_draw(status), element("div", _count(status.dates[-1]), listed, class_="beside")]
    return element("section", *parts, id=title, aria_labelledby=f"{title}-title")


def _draw(status: TimelineStatus) -> Markup:
    dates = status.dates
    each = -(-len(dates) // MOST_BARS)
    groups = [dates[i : i + each] for i in range(0, len(dates), each)]
    pitch = min(_WIDTH / len(groups), _WIDEST)
    bars = [_bar(group, place * pitch, pitch) for place, group in enumerate(groups)]
    several = f" A bar stands for {each} dates and shows the worst of them." if each > 1 else ""
    width = round(pitch * len(groups))
    return element(
        "figure",
        element(
            "svg",
            *bars,
            role="img",
            aria_label=f"Business dates of {status.timeline} by share of keys in each state."
            " The tables below say the same.",
            class_="strip",
            viewBox=f"0 0 {width} {_HEIGHT}",
            width=width,
            height=_HEIGHT,
        ),
        element(
            "figcaption",
            f"{dates[0].on} to {dates[-1].on}, left to right. The height of a colour is its share of the"
            f" keys: failed at the bottom, current at the top.{several}",
        ),
    )


def _bar(group: Sequence[DateKeys], x: float, pitch: float) -> Markup:
    """The states of the worst date of a group, one above the other."""
    worst = min(group, key=_share_current)
    shown = [state for state in DATE_STATES if worst.count(state)]
    heights = {state: max(_LEAST, _HEIGHT * worst.count(state) / worst.total) for state in shown}
    scale = _HEIGHT / sum(heights.values()) if heights else 1
    cells, bottom = [], float(_HEIGHT)
    for state in shown:
        height = heights[state] * scale
        bottom = max(0.0, bottom - height)
        cells.append(_segment(state, x, bottom, pitch, height))
    return element("g", element("title", _title(group, worst)), *cells, class_="bar")


def _segment(state: str, x: float, y: float, pitch: float, height: float) -> Markup:
    gap = min(1.0, pitch / 4)
    middle = x + (pitch - gap) / 2
    line = element("path", d=f"M{middle:.1f} {y + 1:.1f}V{y + height - 1:.1f}")
    return element(
        "g",
        element("rect", x=x, y=y, width=pitch - gap, height=max(height - 0.5, 0.5)),
        line if state == REPROCESSING else "",
        class_=f"cell {state_class(state)}",
    )


def _share_current(day: DateKeys) -> float:
    return day.current / day.total if day.total else 1.0


def _title(group: Sequence[DateKeys], worst: DateKeys) -> str:
    text = f"{worst.on}: {plural(worst.total, 'key')}{': ' if worst.total else ''}{_sum(worst)}"
    return text if len(group) == 1 else f"{group[0].on} to {group[-1].on}, the worst {text}"


def _sum(day: DateKeys) -> str:
    return ", ".join(f"{day.count(state):,} {state}" for state in DATE_STATES if day.count(state))


def _count(day: DateKeys) -> Markup:
    """The keys on the last date by state, and what the states mean."""
    rows = [
        element(
            "tr",
            element("th", swatch(state), state, scope="row", class_="state"),
            element("td", f"{day.count(state):,}", class_="number"),
            element("td", share(day.count(state), day.total), class_="number"),
            element("td", _MEANINGS[state]),
            class_=None if day.count(state) else "none",
        )
        for state in DATE_STATES
    ]
    columns = (("state", None), ("keys", "number"), ("share", "number"), ("meaning", None))
    head = element("tr", *(element("th", name, scope="col", class_=kind) for name, kind in columns))
    caption = element("caption", f"Keys on {day.on}, the last date that is due")
    return element(
        "div", element("table", caption, element("thead", head), element("tbody", *rows)), class_="card"
    )


def _list_dates(status: TimelineStatus) -> Markup:
    """The dates on which not every key is current, newest first."""
    runs = groupby(status.dates, key=lambda day: (day.total, *(day.count(state) for state in DATE_STATES)))
    spans = [_Span(dates=tuple(days)) for _, days in runs]
    listed = [span for span in reversed(spans) if span.dates[0].current < span.dates[0].total]
    if not listed:
        return element("p", "Every key is current on every date.")
    title = anchor("dates", status.timeline)
    number = sum(len(span.dates) for span in listed)
    columns = ("dates", "keys", *DATE_STATES)
    head = element(
        "tr",
        *(
            element("th", name, scope="col", class_="number" if place else None)
            for place, name in enumerate(columns)
        ),
    )
    table = element(
        "table",
        element("caption", f"Not every key is current: {plural(number, 'date')}, newest first", id=title),
        element("thead", head),
        element("tbody", *map(_show_span, listed[:MOST_LISTED])),
    )
    left = sum(len(span.dates) for span in listed[MOST_LISTED:])
    rest = element("p", f"And {plural(left, 'earlier date')}.") if left else ""
    scroll = element("div", table, class_="scroll tall", role="region", aria_labelledby=title, tabindex=0)
    return join(scroll, rest)


def _show_span(span: _Span) -> Markup:
    day = span.dates[0]
    return element(
        "tr",
        element("th", span.text, scope="row", class_="when"),
        element("td", f"{day.total:,}", class_="number"),
        *(element("td", f"{day.count(state):,}", class_="number") for state in DATE_STATES),
    )
