"""Which dates are due, and which days of the week are business dates."""

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from .timeline import BusinessDates

_SATURDAY = 5


def last_day_due(as_of: datetime, dates: BusinessDates) -> date:
    """The last calendar day that is due. It need not be a business date."""
    return (as_of.astimezone(ZoneInfo(dates.timezone)).replace(tzinfo=None) - dates.due_at).date()


def weekdays(first: date, last: date) -> Iterator[date]:
    """Mondays to Fridays from one day to another, both included."""
    day = first
    while day <= last:
        if day.weekday() < _SATURDAY:
            yield day
        day += timedelta(days=1)


def due_from(day: date, dates: BusinessDates) -> datetime:
    """The instant at which a date becomes due."""
    local = datetime.combine(day, time()) + dates.due_at
    return local.replace(tzinfo=ZoneInfo(dates.timezone)).astimezone(UTC)


def find_last(upto: date, listed: Collection[date] | None) -> date | None:
    """The last business date up to a day. `listed` are all business dates, None if they are weekdays."""
    if listed is not None:
        return max((day for day in listed if day <= upto), default=None)
    return upto - timedelta(days=max(0, upto.weekday() - _SATURDAY + 1))


def find_between(after: date, upto: date, listed: Collection[date] | None) -> list[date]:
    """The business dates after a day up to another one, ascending."""
    if listed is not None:
        return sorted(day for day in listed if after < day <= upto)
    return list(weekdays(after + timedelta(days=1), upto))
