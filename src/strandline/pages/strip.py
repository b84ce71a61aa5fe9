"""The partitions of one dataset on a status page: a strip of cells, and tables with the same content."""

from collections import Counter
from collections.abc import Sequence

from strandline.model.key_states import REPROCESSING
from strandline.model.statuses import (
    BEHIND,
    BUILDING,
    FRESH,
    INVALIDATED,
    NEVER_BUILT,
    PARTITION_STATES,
    STALE,
    DatasetStatus,
    PartitionStatus,
)
from strandline.pages.wording import moment, plural, size

from .drawing import anchor, state_class
from .markup import Markup, element, join

MOST_CELLS, ACROSS = 400, 50
MOST_LISTED = 50
_CELL, _PITCH = 16, 20
_MARKS = {
    STALE: "M3 13L13 3",
    INVALIDATED: "M3 13L13 3M3 3L13 13",
    BEHIND: "M3 8H13",
    BUILDING: "M8 3V13",
    REPROCESSING: "M8 3V13",
}
"""Marks that distinguish the states where colours do not."""
_MEANINGS = {
    STALE: "written by an older configuration; waits for a backfill",
    INVALIDATED: "an invalidation of an input may cover rows of it; the next run computes it again",
    BEHIND: "changed rows of an input may fall in it; an upper bound, because only a run finds out which",
    NEVER_BUILT: "waits to be final, or for the next run",
    BUILDING: "being written now",
    FRESH: "up to date",
}


def show_partitions(status: DatasetStatus) -> Markup:
    """A section for a partitioned dataset."""
    title = anchor("partitions", status.dataset)
    partitions = status.partitions
    by = f" of {status.partitioned_by}" if status.partitioned_by else ""
    none = "" if partitions else ": none has been built yet"
    parts = [
        element(
            "h3",
            element("a", status.dataset, href=f"#{anchor('dataset', status.dataset)}"),
            id=f"{title}-title",
        ),
        element("p", f"{plural(len(partitions), 'partition')}{by}{none}."),
    ]
    if partitions:
        listed = element("div", _list_unfresh(status), class_="listed")
        parts += [_draw(status), element("div", _count(partitions), listed, class_="beside")]
    return element("section", *parts, id=title, aria_labelledby=f"{title}-title")


def _draw(status: DatasetStatus) -> Markup:
    partitions = status.partitions
    each = -(-len(partitions) // MOST_CELLS)
    cells = [partitions[i : i + each] for i in range(0, len(partitions), each)]
    drawn = [
        _cell(_worst(c), _title(c), i % ACROSS * _PITCH, i // ACROSS * _PITCH) for i, c in enumerate(cells)
    ]
    width, height = min(len(cells), ACROSS) * _PITCH, -(-len(cells) // ACROSS) * _PITCH
    order = "left to right" if len(cells) <= ACROSS else "left to right, line by line"
    several = (
        f" A cell stands for {each} partitions and shows the worst state among them." if each > 1 else ""
    )
    return element(
        "figure",
        element(
            "svg",
            *drawn,
            role="img",
            aria_label=f"Strip of the partitions of {status.dataset} by state: {_sum(partitions)}."
            " The tables below say the same.",
            class_="strip",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
        ),
        element(
            "figcaption",
            f"{partitions[0].partition_key} to {partitions[-1].partition_key}, {order}.{several}",
        ),
    )


def _cell(state: str, title: str, x: int = 0, y: int = 0) -> Markup:
    """A square with the state's mark. Only a cell of a strip has a title."""
    return element(
        "g",
        element("title", title) if title else "",
        element("rect", x=1, y=1, width=_CELL, height=_CELL, rx=2),
        element("path", d=_MARKS[state]) if state in _MARKS else "",
        class_=f"cell {state_class(state)}",
        transform=f"translate({x} {y})" if x or y else None,
    )


def swatch(state: str) -> Markup:
    """A cell beside a word."""
    return element(
        "svg", _cell(state, ""), aria_hidden="true", class_="swatch", viewBox="0 0 18 18", width=18, height=18
    )


def _worst(partitions: Sequence[PartitionStatus]) -> str:
    return min((p.state for p in partitions), key=PARTITION_STATES.index)


def _title(partitions: Sequence[PartitionStatus]) -> str:
    first = partitions[0]
    if len(partitions) > 1:
        return f"{first.partition_key} to {partitions[-1].partition_key}: {_sum(partitions)}"
    if first.version is None:
        return f"{first.partition_key}: {first.state}"
    built = f"built {moment(first.version)} UTC at table version {first.table_version}"
    return f"{first.partition_key}: {first.state}, {plural(first.rows, 'row')}, {size(first.bytes)}, {built}"


def _sum(partitions: Sequence[PartitionStatus]) -> str:
    number_by_state = Counter(p.state for p in partitions)
    return ", ".join(
        f"{number_by_state[state]:,} {state}" for state in PARTITION_STATES if state in number_by_state
    )


def _count(partitions: Sequence[PartitionStatus]) -> Markup:
    number_by_state = Counter(p.state for p in partitions)
    rows = [
        element(
            "tr",
            element("th", swatch(state), state, scope="row", class_="state"),
            element("td", f"{number_by_state[state]:,}", class_="number"),
            element("td", _MEANINGS[state]),
            class_=None if number_by_state[state] else "none",
        )
        for state in PARTITION_STATES
    ]
    head = element("tr", *(element("th", name, scope="col") for name in ("state", "partitions", "meaning")))
    table = element("table", element("caption", "By state"), element("thead", head), element("tbody", *rows))
    return element("div", table, class_="card")


def _list_unfresh(status: DatasetStatus) -> Markup:
    listed = sorted(
        (p for p in status.partitions if p.state != FRESH), key=lambda p: PARTITION_STATES.index(p.state)
    )
    if not listed:
        return element("p", "Every partition is fresh.")
    shown = _choose(listed)
    title = anchor("unfresh", status.dataset)
    caption = f"Not fresh: {plural(len(listed), 'partition')}, the worst first"
    names = (
        ("partition", None),
        ("state", None),
        ("rows", "number"),
        ("size", "number"),
        ("built", None),
        ("version", "number"),
    )
    head = element("tr", *(element("th", name, scope="col", class_=kind) for name, kind in names))
    table = element(
        "table",
        element("caption", caption, id=title),
        element("thead", head),
        element("tbody", *(_unfresh(p) for p in shown)),
    )
    left = [p for p in listed if p not in shown]
    rest = (
        element(
            "p", f"And {len(left):,} more: {_sum(left)}. `strandline status {status.dataset}` lists them all."
        )
        if left
        else ""
    )
    return join(
        element("div", table, class_="scroll tall", role="region", aria_labelledby=title, tabindex=0), rest
    )


def _choose(listed: Sequence[PartitionStatus]) -> list[PartitionStatus]:
    """At most MOST_LISTED, some of every state: ninety stale ones do not hide three invalidated ones."""
    number_by_state = Counter(p.state for p in listed)
    room = MOST_LISTED
    for states_left, (state, number) in zip(
        range(len(number_by_state), 0, -1), reversed(number_by_state.most_common()), strict=True
    ):
        number_by_state[state] = min(number, room // states_left)
        room -= number_by_state[state]
    shown = []
    for partition in listed:
        if number_by_state[partition.state]:
            number_by_state[partition.state] -= 1
            shown.append(partition)
    return shown


def _unfresh(partition: PartitionStatus) -> Markup:
    built = partition.version is not None
    return element(
        "tr",
        element("th", partition.partition_key, scope="row", class_="when"),
        element("td", swatch(partition.state), partition.state, class_="state"),
        element("td", f"{partition.rows:,}" if built else "", class_="number"),
        element("td", size(partition.bytes) if built else "", class_="number"),
        element("td", moment(partition.version), class_="when"),
        element(
            "td", "" if partition.table_version is None else str(partition.table_version), class_="number"
        ),
    )
