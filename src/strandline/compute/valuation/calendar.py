"""The business dates of a valuation."""

from datetime import date

from pyspark.sql import functions as F

from strandline.lake.work import Work
from strandline.model.business_dates import last_day_due, weekdays
from strandline.model.columns import quote
from strandline.model.timeline import DATE, BusinessDates


def read_business_dates(work: Work, calendar: BusinessDates, history: str) -> list[date]:
    """All business dates that are due, ascending.

    Weekdays are listed from the first date of the history on.
    """
    last = last_day_due(work.as_of, calendar)
    if calendar.dataset:
        column = F.col(quote(calendar.column))
        due = work.read_live(calendar.dataset).where(column.isNotNull() & (column <= F.lit(last)))
        return sorted(row[0] for row in due.select(column).distinct().collect())
    first = work.read_live(history).agg(F.min(DATE)).collect()[0][0]
    return [] if first is None else list(weekdays(first, last))
