"""The drawing of a status page: every dataset with its kind and state, and what reads what."""

import re
from collections.abc import Mapping, Sequence

from strandline.model.statuses import DatasetStatus
from strandline.pages.wording import moment, plural

from .layered import Layout, Place, lay_out
from .markup import Markup, element

BOX_WIDTH, BOX_HEIGHT, COLUMN_GAP, GAP, LINE, HEAD, MARGIN = 208, 64, 56, 14, 6, 30, 6
LONGEST_NAME = 24
SMALLEST = 0.8
"""A drawing that is wider than the page shrinks at most to this scale. Beyond that it scrolls."""


def anchor(prefix: str, name: str) -> str:
    """An id for any name. No two names share one."""
    return f"{prefix}-" + re.sub(r"[^A-Za-z0-9_-]", lambda match: f".{ord(match[0]):x}.", name)


def state_class(state: str) -> str:
    return "state-" + re.sub(r"[^a-z]", "-", state)


def draw_statuses(statuses: Sequence[DatasetStatus]) -> Markup:
    """Sources on the left, readers to the right of what they read. Each box links to its row in the table."""
    by_name = {s.dataset: s for s in statuses}
    number = {name: i for i, name in enumerate(by_name)}
    least = {s.dataset: s.drawn_from for s in statuses}
    layout = lay_out({s.dataset: s.inputs for s in statuses}, least, box=BOX_HEIGHT, line=LINE, gap=GAP)
    width, height = _left(len(layout.columns)) - COLUMN_GAP + MARGIN, round(layout.height) + HEAD + MARGIN
    headings = [
        _heading(c, [s for s in statuses if s.dataset in dict(boxes)])
        for c, boxes in enumerate(layout.columns)
    ]
    lines = [_line(layout, passed, number) for passed in layout.lines]
    boxes = [
        _box(by_name[place[0]], number[place[0]], place, layout)
        for column in layout.columns
        for place in column
    ]
    return element(
        "svg",
        element("style", Markup("".join(_highlight(n) for n in number.values()))),
        element("g", *headings, *lines, aria_hidden="true"),
        *boxes,
        role="group",
        aria_label="Drawing of the datasets: sources on the left, readers to the right of what they read."
        " The table below says the same.",
        class_="drawing",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        style=f"min-width:{round(width * SMALLEST)}px",
    )


def _left(column: int) -> int:
    return MARGIN + column * (BOX_WIDTH + COLUMN_GAP)


def _heading(column: int, drawn: Sequence[DatasetStatus]) -> Markup:
    words = dict.fromkeys(status.drawn_under for status in drawn)
    return element("text", " and ".join(words), class_="heading", x=_left(column), y=HEAD - 14)


def _line(layout: Layout, passed: tuple[Place, ...], number: Mapping[str, int]) -> Markup:
    """Smooth between columns, straight across those it passes."""
    x, y = float(_left(passed[0][1]) + BOX_WIDTH), layout.middle[passed[0]] + HEAD
    path = [f"M{x:.0f} {y:.1f}"]
    for place in passed[1:]:
        to_x, to_y = _left(place[1]), layout.middle[place] + HEAD
        half = (x + to_x) / 2
        path.append(f"C{half:.0f} {y:.1f} {half:.0f} {to_y:.1f} {to_x} {to_y:.1f}")
        x, y = to_x, to_y
        if place != passed[-1]:
            x += BOX_WIDTH
            path.append(f"H{x:.0f}")
    return element(
        "path", d="".join(path), class_=f"line from{number[passed[0][0]]} to{number[passed[-1][0]]}"
    )


def _box(status: DatasetStatus, number: int, place: Place, layout: Layout) -> Markup:
    x, y = _left(place[1]), layout.middle[place] + HEAD - BOX_HEIGHT / 2
    right = x + BOX_WIDTH - 10
    name = (
        status.dataset
        if len(status.dataset) <= LONGEST_NAME
        else status.dataset[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )
    since = f", since {moment(status.since)} UTC" if status.since else ""
    return element(
        "a",
        element(
            "title",
            f"{status.dataset}: {status.kind}, {status.state}{since}, {plural(status.rows, 'row')}."
            " Go to its row in the table.",
        ),
        element("rect", class_="box", x=x, y=y, width=BOX_WIDTH, height=BOX_HEIGHT, rx=6),
        element("rect", class_="band", x=x, y=y, width=8, height=BOX_HEIGHT, rx=4),
        element("text", name, class_="name", x=x + 18, y=y + 20),
        element("text", status.state, class_="state", x=x + 18, y=y + 38),
        element("text", moment(status.since)[:16], class_="end", x=right, y=y + 38) if status.since else "",
        element("text", str(status.kind), x=x + 18, y=y + 55),
        element("text", plural(status.rows, "row"), class_="end", x=right, y=y + 55),
        href=f"#{anchor('dataset', status.dataset)}",
        class_=f"node node{number} {state_class(status.state)}",
    )


def _highlight(number: int) -> str:
    """Highlight the lines of the box that is pointed at or has the focus, without a script."""
    pointed_at = f".drawing:has(.node{number}:is(:hover,:focus-visible))"
    return f"{pointed_at} :is(.from{number},.to{number}){{stroke:var(--accent);stroke-width:2.5}}"
