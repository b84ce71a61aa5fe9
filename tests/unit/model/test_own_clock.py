"""The clock of an entity stands still between hours, days, weeks or months of the project's time zone."""

from datetime import UTC, datetime

import pytest

from strandline.model.own_clock import ColumnRange, Every, OwnClock, WatchedBorder


def read(every: Every | None, text: str) -> str:
    clock = OwnClock(every=every, timezone="Europe/Berlin", borders=())
    return clock.read(datetime.fromisoformat(text)).isoformat()


@pytest.mark.parametrize(
    ("every", "shown"),
    [
        (None, "2024-03-14T22:30:05+00:00"),
        (Every.HOUR, "2024-03-14T22:00:00+00:00"),
        (Every.DAY, "2024-03-13T23:00:00+00:00"),
        (Every.WEEK, "2024-03-10T23:00:00+00:00"),
        (Every.MONTH, "2024-02-29T23:00:00+00:00"),
    ],
)
def test_the_clock_is_rounded_down(every: Every | None, shown: str) -> None:
    assert read(every, "2024-03-14T22:30:05+00:00") == shown


@pytest.mark.parametrize("every", [None, *Every])
def test_a_clock_that_was_read_shows_the_same_again(every: Every | None) -> None:
    once = read(every, "2024-10-27T01:30:00+00:00")

    assert read(every, once) == once


def test_days_begin_at_midnight_in_summer_and_in_winter() -> None:
    assert read(Every.DAY, "2024-03-31T12:00:00+00:00") == "2024-03-30T23:00:00+00:00"
    assert read(Every.DAY, "2024-04-01T12:00:00+00:00") == "2024-03-31T22:00:00+00:00"


def test_an_hour_that_occurs_twice_begins_twice() -> None:
    assert read(Every.HOUR, "2024-10-27T00:30:00+00:00") == "2024-10-27T00:00:00+00:00"
    assert read(Every.HOUR, "2024-10-27T01:30:00+00:00") == "2024-10-27T01:00:00+00:00"


def test_the_clock_never_shows_a_later_time() -> None:
    at = datetime(2024, 3, 14, 22, 30, tzinfo=UTC)

    assert all(OwnClock(every=e, timezone="Asia/Kolkata", borders=()).read(at) <= at for e in Every)


@pytest.mark.parametrize("every", [None, *Every])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_a_clock_can_be_read_at_both_ends_of_the_calendar(every: Every | None, text: str) -> None:
    for timezone in ("Pacific/Kiritimati", "America/New_York"):
        clock = OwnClock(every=every, timezone=timezone, borders=())

        shown = clock.read(datetime.fromisoformat(text))

        assert clock.read(shown) == shown <= datetime.fromisoformat(text)


def test_a_border_at_the_end_of_the_calendar_reaches_only_what_lies_there() -> None:
    border = WatchedBorder(dataset="tracks", column="sent_at", steps=())
    clock = OwnClock(every=None, timezone="UTC", borders=(border,))
    first, now, later = (datetime(year, 1, 1, tzinfo=UTC) for year in (1, 2024, 2025))
    files = [ColumnRange(low=time, high=time) for time in (first, now, later)]

    assert clock.find_reached(border, first, now, files) == files[:2]
