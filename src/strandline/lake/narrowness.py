"""How narrow the files of a table are: how many of them lie above each other in a column."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .files import LiveFile
from .statistics import End, FileStatistics


def depth_of(files: Sequence[LiveFile], columns: Sequence[str]) -> float:
    """The number of files that may have a value, on average over rows and columns.

    It is 1 where no two files overlap. A file without statistics overlaps every other one.
    """
    return sum(_depth(files, column) for column in columns) / len(columns)


def _depth(files: Sequence[LiveFile], column: str) -> float:
    having = [f for f in files if column not in f.statistics.empty]
    ranges = [(found, f.rows) for f in having if (found := f.statistics.find_range(column)) is not None]
    unknown, rows = len(having) - len(ranges), sum(f.rows for f in having)
    if not rows:
        return 0.0
    lows, highs = _sort([low for (low, _), _ in ranges]), _sort([high for (_, high), _ in ranges])

    def count(value: End) -> int:
        return bisect_right(lows, value) - bisect_left(highs, value)

    above = sum(of_file * (count(low) + count(high)) / 2 for (low, high), of_file in ranges)
    return unknown + above / rows


def _sort(ends: list[End]) -> list[Any]:
    """In ascending order: those of one column are of one type."""
    return sorted(ends)


def enclose(files: Sequence[LiveFile], columns: Sequence[str]) -> LiveFile:
    """A file with the rows of all of these."""
    ranges, empty = [], []
    for column in columns:
        having = [f.statistics for f in files if column not in f.statistics.empty]
        found = [ends for s in having if (ends := s.find_range(column)) is not None]
        if not having:
            empty.append(column)
        elif len(found) == len(having):
            lows, highs = _sort([low for low, _ in found]), _sort([high for _, high in found])
            ranges.append((column, lows[0], highs[-1]))
    return replace(
        files[0],
        rows=sum(f.rows for f in files),
        bytes=sum(f.bytes for f in files),
        statistics=FileStatistics(ranges=tuple(ranges), empty=tuple(empty)),
    )
