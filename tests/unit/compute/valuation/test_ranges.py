"""Ranges of dates: united where they touch, cut into files, and those of a calendar that changed."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BooleanType, DateType, StructField, StructType

from strandline.compute.valuation.clustering import cut_dates
from strandline.compute.valuation.dates import find_changed
from strandline.compute.valuation.reach import END, START
from strandline.compute.valuation.scope import MOST_PAIRS, MOST_RANGES, WAITS, find_bounds, unite
from strandline.lake.near import Bounds
from strandline.lake.staging import Staged

STAGED = StructType([StructField(START, DateType()), StructField(END, DateType())])
FIRST = date(2024, 1, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(12)]


def _bounds(days: list[date], begins: bool, ends: bool) -> tuple[date | None, date | None]:
    return (min(days) if begins else None, max(days) if ends else None)


BOUNDS = st.builds(
    _bounds,
    st.lists(st.sampled_from(DAYS), min_size=2, max_size=2, unique=True),
    st.booleans(),
    st.booleans(),
)


def _dates(bounds: tuple[date | None, date | None]) -> set[date]:
    low, high = bounds
    return {day for day in DAYS if (low is None or day >= low) and (high is None or day < high)}


@given(st.lists(BOUNDS, max_size=6))
def test_united_ranges_hold_the_same_dates_once(bounds: list[tuple[date | None, date | None]]) -> None:
    united = unite(bounds)

    dates = [day for one in united for day in _dates(one)]
    assert sorted(dates) == sorted(set().union(*map(_dates, bounds)))


def test_ranges_that_follow_each_other_are_one() -> None:
    assert unite([(DAYS[3], None), (DAYS[0], DAYS[1]), (DAYS[1], DAYS[2])]) == (
        (DAYS[0], DAYS[2]),
        (DAYS[3], None),
    )


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_a_file_of_several_dates_is_not_larger_than_allowed(counts: list[int], most: int) -> None:
    starts = cut_dates(counts, most)

    files = [counts[a:b] for a, b in zip(starts, [*starts[1:], len(counts)], strict=True)]
    assert [count for file in files for count in file] == counts
    assert all(sum(file) <= most or sum(count > 0 for count in file) == 1 for file in files)


@given(st.sets(st.sampled_from(DAYS)), st.sets(st.sampled_from(DAYS)), st.sampled_from(DAYS))
def test_changed_dates_lie_in_ranges_without_a_date_that_stayed(
    before: set[date], now: set[date], last: date
) -> None:
    ranges = find_changed(before, now, last)

    dates = [day for one in ranges for day in _dates(one)]
    assert {day for day in dates if day in before | now} == {day for day in before ^ now if day <= last}
    assert len(dates) == len(set(dates))


def test_a_calendar_that_comes_late_is_one_range() -> None:
    assert find_changed({DAYS[0], DAYS[9]}, {DAYS[0], *DAYS[2:8:2], DAYS[9]}, DAYS[11]) == (
        (DAYS[2], DAYS[7]),
    )


def _stage(folder: Path, ranges: Sequence[Bounds], waiting: Sequence[Bounds] | None = None) -> Staged:
    """Ranges as a task stages them, and those of keys that wait for a later batch."""
    every = [*ranges, *(waiting or ())]
    columns = {
        place: pa.array([one[n] for one in every], pa.date32()) for n, place in enumerate((START, END))
    }
    schema = STAGED
    if waiting is not None:
        columns[WAITS] = pa.array([False] * len(ranges) + [True] * len(waiting))
        schema = StructType([*STAGED, StructField(WAITS, BooleanType())])
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / "ranges.parquet")
    return Staged(path=str(folder), schema=schema, counts={})


def _apart(count: int) -> list[Bounds]:
    """That many dates of which no two follow each other."""
    days = [FIRST + timedelta(days=2 * n) for n in range(count)]
    return [(day, day + timedelta(days=1)) for day in days]


@pytest.mark.parametrize(("count", "found"), [(MOST_RANGES, MOST_RANGES), (MOST_RANGES + 1, 1)])
def test_ranges_are_listed_up_to_a_number_and_then_enclosed(tmp_path: Path, count: int, found: int) -> None:
    ranges = _apart(count)

    bounds = find_bounds(_stage(tmp_path, ranges))

    assert len(bounds) == found
    assert (bounds[0][0], bounds[-1][1]) == (ranges[0][0], ranges[-1][1])


@pytest.mark.parametrize(("count", "found"), [(MOST_PAIRS, 2), (MOST_PAIRS + 2, 1)])
def test_a_gap_between_ranges_is_kept_up_to_a_number_of_distinct_ones(
    tmp_path: Path, count: int, found: int
) -> None:
    later = FIRST + timedelta(days=3 * MOST_PAIRS)
    ends = [timedelta(days=n + 1) for n in range(count // 2)]
    ranges: list[Bounds] = [(start, start + end) for start in (FIRST, later) for end in ends]

    bounds = find_bounds(_stage(tmp_path, ranges))

    assert len(bounds) == found
    assert (bounds[0][0], bounds[-1][1]) == (FIRST, later + ends[-1])


def test_a_range_without_a_bound_has_none_when_ranges_are_enclosed(tmp_path: Path) -> None:
    many = _apart(MOST_PAIRS + 1)
    begun, endless = tmp_path / "begun", tmp_path / "endless"

    assert find_bounds(_stage(begun, [*many, (None, DAYS[3])])) == ((None, many[-1][1]),)
    assert find_bounds(_stage(endless, [*many, (DAYS[3], None)])) == ((FIRST, None),)


def test_ranges_of_keys_that_wait_are_left_out(tmp_path: Path) -> None:
    computed, waiting = [(DAYS[0], DAYS[1]), (DAYS[3], None)], [(None, DAYS[8])]

    assert find_bounds(_stage(tmp_path, computed, waiting)) == tuple(computed)
