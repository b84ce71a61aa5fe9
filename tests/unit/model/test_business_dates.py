"""Which dates are due, and which lie between two days."""

from datetime import UTC, date, datetime, timedelta

import pytest

from strandline.model.business_dates import due_from, find_between, find_dates, find_last, last_day_due
from strandline.model.timeline import BusinessDates

BERLIN = BusinessDates(due_at=timedelta(hours=18), timezone="Europe/Berlin")
LISTED = (date(2024, 1, 8), date(2024, 1, 10), date(2024, 1, 15))


def on(day: int) -> date:
    return date(2024, 1, day)


@pytest.mark.parametrize(
    ("day", "instant"),
    [
        (on(12), datetime(2024, 1, 12, 17, tzinfo=UTC)),
        (date(2024, 7, 1), datetime(2024, 7, 1, 16, tzinfo=UTC)),
    ],
    ids=["in winter", "in summer"],
)
def test_a_date_is_due_from_the_declared_local_time_on(day: date, instant: datetime) -> None:
    assert due_from(day, BERLIN) == instant
    assert last_day_due(instant, BERLIN) == day
    assert last_day_due(instant - timedelta(seconds=1), BERLIN) == day - timedelta(days=1)


@pytest.mark.parametrize(("upto", "last"), [(11, 11), (12, 12), (13, 12), (14, 12), (15, 15)])
def test_the_last_weekday_up_to_a_day(upto: int, last: int) -> None:
    assert find_last(on(upto), None) == on(last)


def test_the_last_listed_date_up_to_a_day() -> None:
    assert [find_last(on(day), LISTED) for day in (7, 8, 9, 14, 20)] == [None, on(8), on(8), on(10), on(15)]


def test_the_first_day_is_left_out_and_the_last_one_included() -> None:
    assert find_between(on(8), on(15), LISTED) == [on(10), on(15)]
    assert find_between(on(11), on(15), None) == [on(12), on(15)]
    assert find_between(on(12), on(12), None) == []
    assert find_between(on(15), on(12), None) == []


@pytest.mark.parametrize(
    ("zone", "due_at", "around"),
    [
        ("Europe/Berlin", "02:30", datetime(2024, 10, 27, tzinfo=UTC)),  # 02:00 to 03:00 comes twice
        ("Europe/Berlin", "02:30", datetime(2024, 3, 31, tzinfo=UTC)),  # and never
        ("America/Santiago", "23:30", datetime(2024, 4, 7, 3, tzinfo=UTC)),
        ("America/St_Johns", "00:00", datetime(2010, 11, 7, 2, tzinfo=UTC)),  # a day ends, and ends again
        ("Pacific/Apia", "18:00", datetime(2011, 12, 30, 4, tzinfo=UTC)),  # which has no 30 December
    ],
)
def test_a_date_that_is_due_stays_due_when_clocks_are_set(zone: str, due_at: str, around: datetime) -> None:
    hours, minutes = map(int, due_at.split(":"))
    dates = BusinessDates(due_at=timedelta(hours=hours, minutes=minutes), timezone=zone)
    days = [last_day_due(around + timedelta(minutes=n), dates) for n in range(-24 * 60, 48 * 60)]

    assert days == sorted(days)
    assert days[-1] > days[0]


def test_dates_at_both_ends_of_the_calendar() -> None:
    first, last = date.min, date.max

    assert find_dates(first, date(1, 1, 7), None) == [date(1, 1, day) for day in (1, 2, 3, 4, 5)]
    assert find_dates(first, on(8), (first, on(8), last)) == [first, on(8)]
    assert find_dates(date(9999, 12, 30), last, None) == [date(9999, 12, 30), last]
    assert last_day_due(datetime(9999, 12, 31, 20, tzinfo=UTC), BERLIN) == last
