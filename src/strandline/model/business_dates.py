"""Which dates are due, and which days of the week are business dates."""

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from .timeline import BusinessDates

_SATURDAY = 5


def last_day_due(as_of: datetime, dates: BusinessDates) -> date:
    """The last calendar day that is due. It need not be a business date.

    A day that is due stays due while clocks are set back and show the time before `due_at` again.
    """
    day = (as_of.astimezone(ZoneInfo(dates.timezone)).replace(tzinfo=None) - dates.due_at).date()
    following = min(day, date.max - timedelta(days=1)) + timedelta(days=1)
    return following if _is_due(following, as_of, dates) else day


def weekdays(first: date, last: date) -> Iterator[date]:
    """Mondays to Fridays from one day to another, both included."""
    days = map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))
    return (day for day in days if day.weekday() < _SATURDAY)


def due_from(day: date, dates: BusinessDates) -> datetime:
    """The instant at which a date becomes due."""
    local = datetime.combine(day, time()) + dates.due_at
    return local.replace(tzinfo=ZoneInfo(dates.timezone)).astimezone(UTC)


def _is_due(day: date, as_of: datetime, dates: BusinessDates) -> bool:
    try:
        return due_from(day, dates) <= as_of
    except OverflowError:  # it is due after the year 9999
        return False


def find_last(upto: date, listed: Collection[date] | None) -> date | None:
    """The last business date up to a day. `listed` are all business dates, None if they are weekdays."""
    if listed is not None:
        return max((day for day in listed if day <= upto), default=None)
    return upto - timedelta(days=max(0, upto.weekday() - _SATURDAY + 1))


def find_dates(first: date, last: date, listed: Collection[date] | None) -> list[date]:
    """The business dates from one day to another, both included, ascending."""
    if listed is not None:
        return sorted(day for day in listed if first <= day <= last)
    return list(weekdays(first, last))


def find_between(after: date, upto: date, listed: Collection[date] | None) -> list[date]:
    """The business dates after a day up to another one, ascending."""
    if listed is not None:
        return sorted(day for day in listed if after < day <= upto)
    return list(weekdays(after + timedelta(days=1), upto))
