"""Business dates, and which of them are due."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import functions as F

from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.timeline import DATE, BusinessDates

SATURDAY = 5


def last_day_due(as_of: datetime, calendar: BusinessDates, timezone: str) -> date:
    """The last calendar day that is due. It need not be a business date."""
    return (as_of.astimezone(ZoneInfo(timezone)).replace(tzinfo=None) - calendar.due_at).date()


def read_business_dates(work: Work, calendar: BusinessDates, history: str) -> list[date]:
    """All business dates, ascending, whether they are due or not.

    Weekdays are listed from the first date of the history on.
    """
    if calendar.dataset:
        column = F.col(quote(calendar.column))
        rows = (
            work.read_live(calendar.dataset).where(column.isNotNull()).select(column.alias(DATE)).distinct()
        )
        return sorted(row[0] for row in rows.collect())
    rows = work.read_live(history).agg(F.min(DATE))
    first = rows.collect()[0][0]
    last = last_day_due(work.as_of, calendar, work.project.calendar.timezone)
    return [] if first is None else list(_weekdays(first, last))


def _weekdays(first: date, last: date) -> Iterable[date]:
    day = first
    while day <= last:
        if day.weekday() < SATURDAY:
            yield day
        day += timedelta(days=1)
