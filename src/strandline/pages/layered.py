"""A drawing of what depends on what, in columns: an item is to the right of what it reads, few lines cross.

The usual method (Sugiyama): a line over several columns passes through a place kept free for it in each.
Columns are ordered by the mean position of their neighbours, sweep after sweep. Then every place moves
towards its neighbours as far as the order allows.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 12

Place = tuple[str, int]
"""A name in a column: its box if the column is its own, else the line that leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    columns: tuple[tuple[Place, ...], ...]
    """The boxes of each column, from top to bottom."""
    middle: Mapping[Place, float]
    """The vertical position of the middle of each place."""
    lines: tuple[tuple[Place, ...], ...]
    """One for each input of each name: from the input's box through the places between to the reader's."""
    height: float


def lay_out(
    inputs_by_name: Mapping[str, Sequence[str]],
    least_column: Mapping[str, int],
    *,
    box: float,
    line: float,
    gap: float,
) -> Layout:
    """Place the boxes and lines, which have these heights and gaps.

    `inputs_by_name` lists inputs before readers. An input that is not itself a name is left out.
    """
    column = _find_columns(inputs_by_name, least_column)
    lines = tuple(
        (*((input_, c) for c in range(column[input_], column[name])), (name, column[name]))
        for name, inputs in inputs_by_name.items()
        for input_ in inputs
        if input_ in column
    )
    # Boxes come first: where nothing else decides, they stay in the order of their declaration.
    places = dict.fromkeys(
        [*((name, c) for name, c in column.items()), *(place for passed in lines for place in passed)]
    )
    columns = [
        [place for place in places if place[1] == c] for c in range(max(column.values(), default=-1) + 1)
    ]
    neighbours = _Neighbours(lines)
    columns = _order(columns, neighbours)
    height = {place: box if column[place[0]] == place[1] else line for place in places}
    middle = _level(columns, neighbours, height, gap)
    top = min((middle[p] - height[p] / 2 for p in places), default=0.0)
    middle = {place: at - top for place, at in middle.items()}
    bottom = max((middle[p] + height[p] / 2 for p in places), default=0.0)
    boxes = tuple(tuple(place for place in c if column[place[0]] == place[1]) for c in columns)
    return Layout(columns=boxes, middle=middle, lines=lines, height=bottom)


def _find_columns(
    inputs_by_name: Mapping[str, Sequence[str]], least_column: Mapping[str, int]
) -> dict[str, int]:
    columns: dict[str, int] = {}
    for name, inputs in inputs_by_name.items():
        read = [columns[input_] + 1 for input_ in inputs if input_ in columns]
        columns[name] = max([least_column[name], *read])
    used = sorted(set(columns.values()))  # without snapshots, their column would be empty
    return {name: used.index(c) for name, c in columns.items()}


class _Neighbours:
    def __init__(self, lines: Iterable[tuple[Place, ...]]) -> None:
        self.left: dict[Place, list[Place]] = {}
        self.right: dict[Place, list[Place]] = {}
        for start, end in dict.fromkeys(pair for passed in lines for pair in pairwise(passed)):
            self.left.setdefault(end, []).append(start)
            self.right.setdefault(start, []).append(end)


def _order(columns: list[list[Place]], neighbours: _Neighbours) -> list[list[Place]]:
    best, fewest = columns, _count_crossings(columns, neighbours)
    for sweep in range(SWEEPS):
        columns = [list(column) for column in columns]
        forward = sweep % 2 == 0
        beside = neighbours.left if forward else neighbours.right
        for c in range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1):
            columns[c] = _sort(columns[c], columns[c - 1 if forward else c + 1], beside)
        crossings = _count_crossings(columns, neighbours)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _sort(column: list[Place], fixed: list[Place], beside: Mapping[Place, list[Place]]) -> list[Place]:
    row = {place: i for i, place in enumerate(fixed)}
    target = {place: _mean([row[p] for p in beside.get(place, ())], i) for i, place in enumerate(column)}
    return sorted(column, key=target.__getitem__)


def _count_crossings(columns: list[list[Place]], neighbours: _Neighbours) -> int:
    """Two lines cross if the one that starts lower ends higher."""
    crossings = 0
    for column, beside in pairwise(columns):
        row = {place: i for i, place in enumerate(beside)}
        ended: list[int] = []
        for place in column:
            ends = sorted(row[p] for p in neighbours.right.get(place, ()))
            crossings += sum(len(ended) - bisect_right(ended, end) for end in ends)
            for end in ends:
                insort(ended, end)
    return crossings


def _level(
    columns: list[list[Place]], neighbours: _Neighbours, height: Mapping[Place, float], gap: float
) -> dict[Place, float]:
    middle: dict[Place, float] = {}
    for column in columns:
        at = 0.0
        for place in column:
            middle[place] = at + height[place] / 2
            at += height[place] + gap
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            targets = [
                _mean(
                    [middle[p] for p in (*neighbours.left.get(place, ()), *neighbours.right.get(place, ()))],
                    middle[place],
                )
                for place in column
            ]
            apart = [(height[a] + height[b]) / 2 + gap for a, b in pairwise(column)]
            middle.update(zip(column, _spread(targets, apart), strict=True))
    return middle


def _spread(targets: list[float], apart: list[float]) -> list[float]:
    """As near to the targets as the distances allow: the mean of pushing everything down and up."""
    down, up = list(targets), list(targets)
    for i in range(1, len(targets)):
        down[i] = max(down[i], down[i - 1] + apart[i - 1])
    for i in range(len(targets) - 2, -1, -1):
        up[i] = min(up[i], up[i + 1] - apart[i])
    return [(a + b) / 2 for a, b in zip(down, up, strict=True)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
