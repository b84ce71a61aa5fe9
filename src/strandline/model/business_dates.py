"""Which dates are due, and which days of the week are business dates."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
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
