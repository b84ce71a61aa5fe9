"""A question in Spark's SQL over published tables."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from strandline.lake.location import Lake
from strandline.lake.plain_values import plain_column
from strandline.lake.query import visible_columns
from strandline.lake.reads import read_table
from strandline.model.columns import DELETED, quote
from strandline.model.errors import CallError
from strandline.model.project import Calendar

from .job.code import provide_calendar


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table at a version, under its name in the SQL."""

    name: str
    dataset: str
    version: int
    live_only: bool
    in_order: Callable[[Iterable[str]], list[str]]


def ask(
    session: SparkSession,
    lake: Lake,
    calendar: Calendar,
    views: tuple[View, ...],
    sql: str,
    shown: Collection[str],
) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    """Column names and rows. Metadata columns are included only if they are in `shown`."""
    own = session.newSession()
    provide_calendar(own, calendar)
    for view in views:
        rows = read_table(own, lake, view.dataset, view.version)
        live = rows.where(~F.col(DELETED)) if view.live_only else rows
        columns = visible_columns(view.in_order(live.columns), shown)
        live.select(*(quote(name) for name in columns)).createOrReplaceTempView(view.name)
    try:
        answer = own.sql(sql)
        table = answer.toArrow()
    except PySparkException as error:
        raise CallError(
            f"Spark refuses the SQL: {str(error).splitlines()[0]}", remedy="Correct the SQL.", slug="bad-sql"
        ) from error
    return tuple(answer.columns), tuple(
        zip(*(plain_column(column) for column in table.columns), strict=True)
    ) if table.num_columns else ()
