"""The functions that Strandline provides to users' SQL."""

from pyspark.sql import SparkSession

from strandline.model.project import Calendar
from strandline.sql.calendar import define_calendar


def provide_calendar(session: SparkSession, calendar: Calendar, code: str | None = None) -> None:
    """Define `local_date` and the other provided functions in a session: those that the SQL names, or all."""
    for statement in define_calendar(calendar, code):
        session.sql(statement)
