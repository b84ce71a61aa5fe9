"""The clock of an entity stands still between hours, days, weeks or months of the project's time zone."""

from datetime import UTC, datetime

import pytest

from strandline.model.own_clock import Every, OwnClock


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
