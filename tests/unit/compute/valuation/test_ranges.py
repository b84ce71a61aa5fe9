"""Ranges of dates: united where they touch, cut into files, and those of a calendar that changed."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from strandline.compute.valuation.clustering import cut_dates
from strandline.compute.valuation.dates import find_changed
from strandline.compute.valuation.scope import unite

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
