"""When a delivery that failed is tried again, and when it is dead."""

from datetime import UTC, datetime, timedelta

import pytest

from strandline.model.deliveries import Outcome, find_owed_since, find_pause
from strandline.model.endpoints import DEFAULT_RETRY

FAILED = Outcome(delivered=False, status_code=500)
SECOND = timedelta(seconds=1)


def test_the_schedule_ends_after_its_last_pause() -> None:
    pauses = [find_pause(FAILED, attempts, DEFAULT_RETRY, 0.5) for attempts in range(1, 10)]

    assert pauses == [*DEFAULT_RETRY, None, None]


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 240), (0.5, 300), (1.0, 360)])
def test_attempts_are_spread_by_twenty_percent(chance: float, seconds: int) -> None:
    assert find_pause(FAILED, 2, DEFAULT_RETRY, chance) == seconds * SECOND


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (Outcome(delivered=False, timed_out=True), 60),
        (Outcome(delivered=False, status_code=429), 60),
        (Outcome(delivered=False, status_code=429, retry_after=2 * SECOND), 60),
        (Outcome(delivered=False, status_code=503, retry_after=2 * SECOND), 5),
        (Outcome(delivered=False, status_code=503, retry_after=7200 * SECOND), 7200),
        (Outcome(delivered=False, status_code=503, retry_after=timedelta(days=9)), 86_400),
    ],
)
def test_a_receiver_that_is_slow_or_asks_for_time_gets_it(outcome: Outcome, seconds: int) -> None:
    assert find_pause(outcome, 1, DEFAULT_RETRY, 0.5) == seconds * SECOND


def test_time_that_a_receiver_asks_for_adds_no_attempt() -> None:
    asks = Outcome(delivered=False, status_code=503, retry_after=7200 * SECOND)

    assert find_pause(asks, len(DEFAULT_RETRY) + 1, DEFAULT_RETRY, 0.5) is None


def test_what_cannot_succeed_is_dead_at_once() -> None:
    assert find_pause(Outcome(delivered=False, hopeless=True), 1, DEFAULT_RETRY, 0.5) is None


def test_an_event_is_owed_again_while_it_may_be_inside_its_schedule() -> None:
    recorded = datetime(2024, 1, 1, tzinfo=UTC)

    assert find_owed_since(recorded + timedelta(hours=27), DEFAULT_RETRY) < recorded
    assert find_owed_since(recorded + timedelta(hours=34), DEFAULT_RETRY) > recorded


def test_a_schedule_of_centuries_owes_everything() -> None:
    now = datetime(2024, 1, 15, tzinfo=UTC)

    assert find_owed_since(now, (timedelta(days=36_600),) * 40) < datetime(1930, 1, 1, tzinfo=UTC)
