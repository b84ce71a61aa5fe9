"""What a valuation must have published, recomputed in full without the code that scopes or joins (L2).

Every cell takes the last row of the history, and of each dated reference, that comes before it when both are
put in the order of their dates. There is no grid, there are no steps, and no head of the history is read.
"""

from collections.abc import Sequence
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

_CELL = "__cell"
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
    key = [quote(c) for c in valuation.timeline.key]
    dates = read_business_dates(work, valuation.calendar, valuation.timeline.output)
    calendar = work.session.createDataFrame([(day,) for day in dates], f"{DATE} date")
    fields = [quote(field.name) for field in valuation.timeline.fields]
    held = history.select(*key, DATE, F.struct(*fields, F.lit(True).alias("__is_held")).alias("__held"))
    cells = history.select(*key).distinct().crossJoin(F.broadcast(calendar))
    cells = _carry(held, cells, key, "__held").where("__held IS NOT NULL")
    cells = cells.select(*key, DATE, *(F.col(f"__held.{field}") for field in fields))
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
    return cells.select(*map(quote, (*valuation.timeline.key, *_columns(valuation))))


def _look_up(work: Work, reference: Reference, cells: DataFrame) -> DataFrame:
    rows = work.read_live(reference.dataset)
    content = F.struct(*map(quote, user_columns(rows.columns)))
    ons = [f"__on{place}" for place, _ in enumerate(reference.on)]
    theirs = rows.select(
        content.alias(reference.name),
        *(F.col(quote(m.theirs)).alias(name) for m, name in zip(reference.on, ons, strict=True)),
        *([F.col(quote(reference.date)).alias(DATE)] if reference.date else []),
    )
    if not reference.date:
        same = [F.col(name) == _ours(m) for m, name in zip(reference.on, ons, strict=True)]
        return cells.join(theirs, reduce(and_, same), "left").drop(*ons)
    # A NULL is equal to nothing, and on or before nothing.
    theirs = theirs.where(" AND ".join(f"{column} IS NOT NULL" for column in (DATE, *ons)))
    ours = {name: _ours(m) for m, name in zip(reference.on, ons, strict=True)}
    return _carry(theirs, cells.withColumns(ours), ons, reference.name).drop(*ons)


def _carry(rows: DataFrame, cells: DataFrame, by: Sequence[str], column: str) -> DataFrame:
    """Cells with `column` of the last row with the same values of `by` on or before their date.

    Rows and cells are put in one order, in which each cell takes what was there last.
    """
    wide = cells.select(*by, DATE, F.struct(*map(quote, cells.columns)).alias(_CELL))
    both = wide.unionByName(rows.select(*by, DATE, quote(column)), allowMissingColumns=True)
    so_far = (
        Window.partitionBy(*by)
        .orderBy(F.col(DATE), F.col(_CELL).isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    carried = both.withColumn(column, F.last(quote(column), ignorenulls=True).over(so_far))
    return carried.where(f"{_CELL} IS NOT NULL").select(f"{_CELL}.*", quote(column))


def _ours(match: Match) -> Column:
    return F.col(f"{quote(match.reference)}.{quote(match.ours)}" if match.reference else quote(match.ours))
