"""Whether a row may cross a border, by the ranges of files alone: never a false no."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest

from strandline.model.border_steps import BorderStep, Shift, ToDate, Truncate
from strandline.model.own_clock import ColumnRange, OwnClock, WatchedBorder

CLOCK = OwnClock(every=None, timezone="Asia/Kolkata", borders=())
BEFORE, NOW = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC)
WEEK_AGO = (Shift(seconds=-604_800),)


def reaches(steps: tuple[BorderStep, ...] | None, *files: tuple[str, str] | None, back: bool = False) -> bool:
    border = WatchedBorder(dataset="d", column="c", steps=steps)
    ranges = [
        ColumnRange(low=datetime.fromisoformat(f[0] + "Z"), high=datetime.fromisoformat(f[1] + "Z"))
        if f
        else ColumnRange(low=None, high=None)
        for f in files
    ]
    times = (NOW, BEFORE) if back else (BEFORE, NOW)
    return bool(CLOCK.find_reached(border, *times, ranges))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "reached"),
    [
        ("2024-04-01T00:00", "2024-04-23T23:59", False),
        ("2024-04-01T00:00", "2024-04-24T00:00", True),
        ("2024-04-24T12:00", "2024-04-24T12:00", True),
        ("2024-04-25T00:00", "2024-04-30T00:00", True),
        ("2024-04-25T00:01", "2024-04-30T00:00", False),
        ("2024-04-01T00:00", "2024-05-30T00:00", True),
    ],
)
def test_a_file_is_reached_if_its_range_touches_the_band(
    low: str, high: str, reached: bool, back: bool
) -> None:
    assert reaches(WEEK_AGO, (low, high), back=back) is reached


def test_a_file_without_statistics_and_an_unknown_border_reach_everything() -> None:
    far = ("2020-01-01T00:00", "2020-01-02T00:00")

    assert not reaches(WEEK_AGO, far)
    assert reaches(WEEK_AGO, far, None)
    assert reaches(None, far)
    assert not reaches(None)
    assert not reaches(WEEK_AGO)


def test_a_date_is_taken_with_a_margin() -> None:
    border = WatchedBorder(dataset="d", column="c", steps=(ToDate(local=True),))

    def reached(day: date) -> bool:
        return bool(CLOCK.find_reached(border, BEFORE, NOW, [ColumnRange(low=day, high=day)]))

    assert reached(date(2024, 5, 1))
    assert reached(date(2024, 5, 2))
    assert not reached(date(2024, 4, 20))


def test_whoever_crosses_is_always_reached() -> None:
    chance = random.Random(4)
    for _ in range(3000):
        shift, unit = chance.randint(-90, 90) * 3600, chance.choice(("DAY", "HOUR", "MONTH", "WEEK"))
        steps: tuple[BorderStep, ...] = chance.choice(
            [(Shift(seconds=shift),), (Truncate(unit=unit),), (Shift(seconds=shift), Truncate(unit=unit))]
        )
        at = BEFORE + timedelta(minutes=chance.randint(-200_000, 200_000))
        before, now = (BEFORE + timedelta(minutes=chance.randint(-90_000, 90_000)) for _ in range(2))
        border = WatchedBorder(dataset="d", column="c", steps=steps)
        values = [CLOCK.value(border, time) for time in (before, now)]
        sides = [isinstance(value, datetime) and at < value for value in values]

        if sides[0] != sides[1]:
            assert CLOCK.find_reached(border, before, now, [ColumnRange(low=at, high=at)])
