"""A question in Spark's SQL over published tables."""

from collections.abc import Collection, Iterable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.lake.location import Lake
from strandline.lake.plain_values import plain_column
from strandline.lake.query import Published, part_columns, visible_columns
from strandline.lake.reads import read_table
from strandline.model.columns import DELETED, HEAD, ROLE, quote
from strandline.model.errors import CallError
from strandline.model.project import Calendar
from strandline.model.timeline import KeyStatus

from .calendar import provide_calendar


def ask(
    session: SparkSession,
    lake: Lake,
    calendar: Calendar,
    tables: Iterable[Published],
    sql: str,
    shown: Collection[str],
) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    """Column names and rows. Metadata columns are included only if they are in `shown`."""
    own = session.newSession()
    provide_calendar(own, calendar)
    for table in tables:
        rows = read_table(own, lake, table.dataset, table.version)
        _select(table, rows, shown).createOrReplaceTempView(table.name)
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


def _select(table: Published, rows: DataFrame, shown: Collection[str]) -> DataFrame:
    """What a reader sees of a table."""
    names = table.in_order(rows.columns)
    if table.part is None:
        live = rows.where(~F.col(DELETED)) if table.live_only else rows
        return live.select(*map(quote, visible_columns(names, shown)))
    head = F.col(HEAD)
    current = head.getField("status") == KeyStatus.CURRENT
    details = []
    for name in table.part.details:
        value = head.getField(name)
        if name in table.defaults:
            value = F.when(current, F.coalesce(value, F.lit(table.defaults[name]))).otherwise(value)
        details.append(value.alias(name))
    columns = map(F.col, map(quote, part_columns(table.part, names)))
    return rows.where(F.col(ROLE) == table.part.role).select(*columns, *details)
