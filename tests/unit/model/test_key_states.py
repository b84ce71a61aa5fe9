"""How many keys of a timeline are current, reprocessing or failed on each business date."""

from datetime import date

from strandline.model.key_states import (
    CURRENT,
    DATE_STATES,
    FAILED,
    NOT_VALUED,
    REPROCESSING,
    DateKeys,
    HeadCount,
    KeysStatus,
    count_by_date,
    count_keys,
)
from strandline.model.timeline import KeyStatus


def on(day: int) -> date:
    return date(2024, 1, day)


FRIDAY = on(12)
DATES = [on(day) for day in (8, 9, 10, 11, 12)]


def head(status: str = "CURRENT", keys: int = 1, **more: object) -> HeadCount:
    values: dict[str, object] = {"watermark_on": None, "first_on": on(1), **more}
    return HeadCount(status=KeyStatus(status), keys=keys, **values)  # type: ignore[arg-type]


def states(heads: list[HeadCount], valued_to: date | None = FRIDAY) -> list[list[tuple[str, int]]]:
    """For each date: the states that occur, with the number of keys."""
    counted = count_by_date(heads, DATES, valued_to)
    assert [day.on for day in counted] == DATES
    assert all(day.total == sum(day.count(state) for state in DATE_STATES) for day in counted)
    return [[(s, day.count(s)) for s in DATE_STATES if day.count(s)] for day in counted]


def test_a_key_counts_from_its_first_date_on() -> None:
    heads = [head(keys=3), head(keys=2, first_on=on(10)), head(first_on=None)]

    assert states(heads) == [[(CURRENT, 3)]] * 2 + [[(CURRENT, 5)]] * 3


def test_dates_after_the_last_one_valued_are_not_valued_yet() -> None:
    assert states([head()], on(10)) == [[(CURRENT, 1)]] * 3 + [[(NOT_VALUED, 1)]] * 2
    assert states([head()], None) == [[(NOT_VALUED, 1)]] * 5


def test_a_key_whose_fold_fails_fails_after_its_watermark() -> None:
    assert states([head("FAILED", watermark_on=on(9))]) == [[(CURRENT, 1)]] * 2 + [[(FAILED, 1)]] * 3
    assert states([head("FAILED")]) == [[(FAILED, 1)]] * 5


def test_a_key_that_waits_for_a_reference_fails_on_those_dates_alone() -> None:
    waiting = head("FAILED", watermark_on=on(8), waits=(on(9), on(11)))

    assert states([waiting]) == [[(c, 1)] for c in (CURRENT, FAILED, CURRENT, FAILED, CURRENT)]


def test_marked_dates_are_reprocessing_and_others_are_current() -> None:
    marked = head("REPROCESSING", 2, pending=((None, on(9)), (on(11), None)), waits=(on(11),))

    expected = [REPROCESSING, CURRENT, CURRENT, REPROCESSING, REPROCESSING]
    assert states([marked]) == [[(state, 2)] for state in expected]


def test_overlapping_marks_count_once_and_only_from_the_first_date_on() -> None:
    marked = head("REPROCESSING", first_on=on(9), pending=((on(8), on(11)), (on(10), on(12))))

    assert states([marked]) == [[], *[[(REPROCESSING, 1)]] * 3, [(CURRENT, 1)]]


def test_no_dates_give_nothing() -> None:
    assert count_by_date([head()], [], on(12)) == ()
    assert count_by_date([], DATES[:1], on(12)) == (DateKeys(on=on(8)),)


def test_the_lowest_watermark_is_that_of_any_key_that_has_one() -> None:
    heads = [head(keys=5), head("REPROCESSING", 2, watermark_on=on(10)), head("FAILED")]

    keys = count_keys(heads, on(12))

    assert keys == KeysStatus(current=5, reprocessing=2, failed=1, watermark_on=on(10))
    assert keys.total == 8
    assert count_keys(heads[:1], on(12)).watermark_on == on(12)
    assert count_keys(heads[2:], on(12)).watermark_on is None
