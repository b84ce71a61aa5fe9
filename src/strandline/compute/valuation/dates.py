"""The business dates of a task: those that are due, those that changed, and those that are new."""

from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import functions as F

from strandline.lake.dates import read_dates as list_dates
from strandline.lake.work import Work
from strandline.model.business_dates import last_day_due, weekdays
from strandline.model.errors import WorkError
from strandline.model.plan import Strategy
from strandline.model.timeline import DATE, BusinessDates, Valuation


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    business: tuple[date, ...]
    """All business dates that are due, ascending."""
    changed: tuple[tuple[date, date], ...] = ()
    """Ranges, their ends excluded, of due dates that became or ceased to be business dates."""
    last_before: date | None = None
    """The last business date that was due when the output was last written."""
    new: tuple[date, ...] = ()
    """Business dates that have become due since then."""


def read_dates(work: Work, valuation: Valuation) -> Dates:
    """A task that computes everything does not read the earlier calendar, which may be cleaned away."""
    calendar = valuation.calendar
    business = tuple(read_business_dates(work, calendar, valuation.timeline.output))
    if work.as_of_before is None:
        return Dates(business=business, new=business)
    day_before = last_day_due(work.as_of_before, calendar)
    changed: tuple[tuple[date, date], ...] = ()
    increment = work.task.strategy is not Strategy.FULL
    if calendar.dataset and increment and work.has_changes(calendar.dataset):
        earlier = _dates_in(work, calendar, work.after(calendar.dataset))
        last = max(last_day_due(work.as_of, calendar), day_before)
        changed = find_changed(earlier, _dates_in(work, calendar), last)
        were_business = sorted(earlier)
    elif calendar.dataset:
        were_business = list(business)
    else:
        were_business = list(weekdays(day_before - timedelta(days=6), day_before))
    return Dates(
        business=business,
        changed=changed,
        last_before=max((day for day in were_business if day <= day_before), default=None),
        new=tuple(day for day in business if day > day_before),
    )


def find_changed(before: set[date], now: set[date], last: date) -> tuple[tuple[date, date], ...]:
    """The dates up to `last` that only one of two calendars has, as ranges whose ends are excluded.

    A range contains no date that both calendars have. If thousands of dates are added at once, and no earlier
    date lies between them, they are one range.
    """
    ranges: list[tuple[date, date]] = []
    follows = False
    for day in sorted(day for day in before | now if day <= last):
        if day in before and day in now:
            follows = False
            continue
        first = ranges.pop()[0] if follows else day
        ranges.append((first, day + timedelta(days=1)))
        follows = True
    return tuple(ranges)


def read_business_dates(work: Work, calendar: BusinessDates, history: str) -> list[date]:
    """All business dates that are due, ascending. Weekdays are listed from the first of the history on."""
    last = last_day_due(work.as_of, calendar)
    if calendar.dataset:
        dates = _dates_in(work, calendar)
        return sorted(day for day in dates if day <= last)
    first = work.read_live(history).agg(F.min(DATE)).collect()[0][0]
    return [] if first is None else list(weekdays(first, last))


def find_empty_calendar(work: Work, valuation: Valuation) -> WorkError | None:
    """What to tell if a calendar has no date at all. One whose dates are not due yet is right."""
    calendar, name = valuation.calendar, valuation.timeline.name
    if not calendar.dataset or _dates_in(work, calendar):
        return None
    return WorkError(
        f"{valuation.place}: the calendar of the timeline `{name}`, `{calendar.dataset}`, has no row with a"
        f" `{calendar.column}`, so `{valuation.output}` has no rows.",
        remedy="Add its business dates, and run again; or declare `calendar: weekdays`, and run"
        f" `strandline backfill {name} --all`.",
        slug="calendar-empty",
    )


def _dates_in(work: Work, calendar: BusinessDates, version: int | None = None) -> set[date]:
    assert calendar.dataset is not None
    version = work.version(calendar.dataset) if version is None else version
    return set(list_dates(work.lake, calendar.dataset, version, calendar.column))
