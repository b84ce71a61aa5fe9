"""How many keys of a timeline are current, reprocessing or failed, now and on each business date."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate

from .timeline import KeyStatus

CURRENT, REPROCESSING, FAILED, NOT_VALUED = "current", "reprocessing", "failed", "not valued yet"
DATE_STATES = (FAILED, REPROCESSING, NOT_VALUED, CURRENT)
"""The states of a key on a business date, worst first."""

DateRange = tuple[date | None, date | None]
"""Dates from a start to an end, which is excluded. None has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCount:
    """The number of keys whose heads say the same."""

    status: KeyStatus
    watermark_on: date | None
    keys: int
    waits: tuple[date, ...] = ()
    """The business dates on which a required reference has no row."""
    pending: tuple[DateRange, ...] = ()
    """The dates that wait for a later batch."""
    first_on: date | None = None
    """The first date with facts. None if the key has none, or it was not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysStatus:
    """The number of keys by status."""

    current: int = 0
    reprocessing: int = 0
    failed: int = 0
    watermark_on: date | None = None
    """The lowest date up to which a key is complete. None if no key is complete up to any date."""

    @property
    def total(self) -> int:
        return self.current + self.reprocessing + self.failed


def count_keys(heads: Iterable[HeadCount], valued_to: date | None) -> KeysStatus:
    """`valued_to` is the watermark of current keys whose heads have none."""
    known = tuple(heads)
    number = {status: sum(h.keys for h in known if h.status is status) for status in KeyStatus}
    return KeysStatus(
        current=number[KeyStatus.CURRENT],
        reprocessing=number[KeyStatus.REPROCESSING],
        failed=number[KeyStatus.FAILED],
        watermark_on=find_lowest(known, valued_to),
    )


def find_lowest(heads: Iterable[HeadCount], valued_to: date | None) -> date | None:
    """The lowest watermark. Keys that are complete up to no date have none."""
    watermarks = (h.watermark_on or (valued_to if h.status is KeyStatus.CURRENT else None) for h in heads)
    return min((day for day in watermarks if day is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateKeys:
    """The number of keys in each state on one business date. Keys whose first date is later do not count."""

    on: date
    current: int = 0
    reprocessing: int = 0
    failed: int = 0
    not_valued: int = 0

    @property
    def total(self) -> int:
        return self.current + self.reprocessing + self.failed + self.not_valued

    def count(self, state: str) -> int:
        """The number of keys in one of DATE_STATES."""
        return {
            CURRENT: self.current,
            REPROCESSING: self.reprocessing,
            FAILED: self.failed,
            NOT_VALUED: self.not_valued,
        }[state]


def count_by_date(
    heads: Iterable[HeadCount], dates: Sequence[date], valued_to: date | None
) -> tuple[DateKeys, ...]:
    """The keys on each of these business dates, which ascend. `valued_to` is the last day that was valued."""
    steps = {state: [0] * (len(dates) + 1) for state in DATE_STATES}

    def add(state: str, first: int, end: int, keys: int) -> None:
        if first < end:
            steps[state][first] += keys
            steps[state][end] -= keys

    for head in heads:
        if head.first_on is None:
            continue
        start, end = bisect_left(dates, head.first_on), len(dates)
        fold_fails = head.status is KeyStatus.FAILED and not head.waits
        reached = head.watermark_on if fold_fails else valued_to
        split = max(start, bisect_right(dates, reached)) if reached else start
        rest = FAILED if fold_fails else NOT_VALUED
        add(CURRENT, start, split, head.keys)
        add(rest, split, end, head.keys)
        pending = _find_places(head.pending, dates, start)
        waiting = {place for place, day in enumerate(dates) if day in set(head.waits)} - pending
        for state, places in ((REPROCESSING, pending), (FAILED, waiting)):
            for place in places:
                add(CURRENT if place < split else rest, place, place + 1, -head.keys)
                add(state, place, place + 1, head.keys)
    totals = {state: list(accumulate(step)) for state, step in steps.items()}
    return tuple(
        DateKeys(
            on=day,
            current=totals[CURRENT][place],
            reprocessing=totals[REPROCESSING][place],
            failed=totals[FAILED][place],
            not_valued=totals[NOT_VALUED][place],
        )
        for place, day in enumerate(dates)
    )


def _find_places(ranges: Iterable[DateRange], dates: Sequence[date], start: int) -> set[int]:
    """The places of the dates in these ranges, from a place on."""
    places: set[int] = set()
    for low, high in ranges:
        first = bisect_left(dates, low) if low else 0
        end = bisect_left(dates, high) if high else len(dates)
        places.update(range(max(first, start), end))
    return places
