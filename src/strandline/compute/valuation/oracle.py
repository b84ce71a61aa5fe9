"""What a valuation must have published, recomputed in full without the code that scopes or joins (L2).

Every cell finds its row of the history, and of each dated reference, by comparing all dates: the latest on or
before its own wins. There is no grid, there are no steps, and no head of the history is read.
"""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.compute.keys import user_columns
from strandline.compute.timeline.oracle import count_keys
from strandline.lake.work import Expected, Work
from strandline.model.columns import DELETED, HEAD, ROLE, Role, quote
from strandline.model.timeline import DATE, EPOCH, KeyStatus, Match, Reference, Valuation

from .dates import read_business_dates

_ON, _CELL = "__on", "__cell"
EPOCH_IS_RIGHT = "epoch_is_right"
"""True for each row. False for a published one whose epoch is greater than that of its key."""


def expect_valuation(work: Work, valuation: Valuation) -> Expected:
    """Rows of all keys but those whose fold fails and those that wait for a later batch.

    What is published of these was computed from earlier versions, so it is not judged.
    """
    own = work.read_own()
    assert own is not None
    key = valuation.timeline.key
    history = work.read_all(valuation.timeline.output)
    failed = history.where(
        (F.col(ROLE) == str(Role.HEAD)) & (F.col(f"{HEAD}.status") == str(KeyStatus.FAILED))
    )
    waiting = own.where(
        (F.col(ROLE) == str(Role.HEAD)) & (F.col(f"{HEAD}.status") == str(KeyStatus.REPROCESSING))
    )
    left_out = failed.select(*map(quote, key)).union(waiting.select(*map(quote, key)))
    rows = _anti(history.where(~F.col(DELETED)), left_out, key)
    expected = _value_all(work, valuation, rows).withColumn(EPOCH_IS_RIGHT, F.lit(True))
    heads = own.where(F.col(ROLE) == str(Role.HEAD)).select(*map(quote, key), F.col(EPOCH).alias("__most"))
    published = _anti(own.where(~F.col(DELETED)), left_out, key)
    same = [published[quote(c)].eqNullSafe(heads[quote(c)]) for c in key]
    right = F.coalesce(F.col(EPOCH) <= F.col("__most"), F.lit(False))
    columns = [*(published[quote(c)] for c in key), *(F.col(quote(c)) for c in _columns(valuation))]
    published = published.join(heads, same, "left").select(*columns, right.alias(EPOCH_IS_RIGHT))
    return Expected(rows=expected, published=published, sampled_by=key, keys=count_keys(own))


def _columns(valuation: Valuation) -> list[str]:
    fields = [field.name for field in valuation.timeline.fields]
    return [DATE, *fields, *(column.name for column in valuation.columns)]


def _anti(rows: DataFrame, keys: DataFrame, key: tuple[str, ...]) -> DataFrame:
    return rows.join(keys, [rows[quote(c)].eqNullSafe(keys[quote(c)]) for c in key], "left_anti")


def _value_all(work: Work, valuation: Valuation, history: DataFrame) -> DataFrame:
    key = valuation.timeline.key
    dates = read_business_dates(work, valuation.calendar, valuation.timeline.output)
    calendar = work.session.createDataFrame([(day,) for day in dates], f"{_ON} date")
    fields = [quote(field.name) for field in valuation.timeline.fields]
    held = history.select(*map(quote, key), F.col(DATE).alias("__since"), *fields)
    cells = held.join(calendar, F.col("__since") <= F.col(_ON))
    cells = _latest(cells, [*map(quote, key), _ON], "__since")
    cells = cells.drop("__since").withColumnRenamed(_ON, DATE)
    cells = cells.withColumn(_CELL, F.monotonically_increasing_id()).localCheckpoint()
    for reference in valuation.references:
        cells = _look_up(work, reference, cells)
    for reference in valuation.references:
        if reference.required:
            cells = cells.where(F.col(quote(reference.name)).isNotNull())
    provide_calendar(work.session, work.project.calendar, valuation.code)
    for column in valuation.columns:
        cells = cells.withColumn(column.name, F.expr(column.sql))
    if valuation.where:
        cells = cells.where(F.expr(valuation.where))
    return cells.select(*map(quote, (*key, *_columns(valuation))))


def _look_up(work: Work, reference: Reference, cells: DataFrame) -> DataFrame:
    rows = work.read_live(reference.dataset)
    content = F.struct(*map(quote, user_columns(rows.columns)))
    theirs = rows.select(
        content.alias(reference.name), *(F.col(quote(m.theirs)).alias(f"__{m.theirs}") for m in reference.on)
    )
    same = [F.col(quote(f"__{m.theirs}")) == _ours(m) for m in reference.on]
    names = [f"__{m.theirs}" for m in reference.on]
    if not reference.date:
        return cells.join(theirs, reduce(and_, same), "left").drop(*names)
    since = F.col(f"{quote(reference.name)}.{quote(reference.date)}")
    joined = cells.join(theirs, reduce(and_, [*same, since <= F.col(DATE)]), "left").drop(*names)
    return _latest(joined.withColumn("__since", since), [_CELL], "__since").drop("__since")


def _ours(match: Match) -> Column:
    return F.col(f"{quote(match.reference)}.{quote(match.ours)}" if match.reference else quote(match.ours))


def _latest(rows: DataFrame, by: list[str], since: str) -> DataFrame:
    window = Window.partitionBy(*by).orderBy(F.col(since).desc_nulls_last())
    return rows.withColumn("__nth", F.row_number().over(window)).where("__nth = 1").drop("__nth")
