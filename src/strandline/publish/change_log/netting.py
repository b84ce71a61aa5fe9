"""Rows that left and came -> one net change a row key and commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from strandline.lake.normal import comparable
from strandline.model.columns import DELETED, METADATA_COLUMNS, SOURCE_TS, TimeUnit, quote

VERSION, AT, TIME, OPERATION, FIELDS, NEW_ROW, OLD_ROW = (
    "version",
    "at",
    "source_timestamp",
    "operation",
    "fields",
    "new",
    "old",
)
_CAME, _DEAD, _KEY, _PLACE = "__came", "__dead", "__key", "__place"
_PER_MICROSECOND = {
    TimeUnit.MILLISECONDS: "unix_millis({at})",
    TimeUnit.MICROSECONDS: "unix_micros({at})",
    TimeUnit.NANOSECONDS: "unix_micros({at}) * 1000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Netting:
    """What is common to all changes of one dataset."""

    key: tuple[str, ...]
    """The columns that name a row."""
    place: tuple[str, ...]
    """The columns whose rows are replaced together: a fact about one takes the others away."""
    order: tuple[str, ...]
    """The columns of the dataset, in its order."""
    unit: TimeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Rows of one or several commits. All have the same types."""

    rows: DataFrame
    came: Column
    """Whether a row came by the commit. Otherwise it left."""
    version: Column
    at: Column
    """When the commit was made."""


def net_changes(sides: Sequence[Sides], netting: Netting) -> DataFrame:
    """One row a row key and commit that changed it. `new` and `old` are the row after and before, or NULL.

    If there are two sides, their types may differ: the first has the rows that left, the other those that
    came.
    """
    old, new = _row_type(sides[0].rows, netting), _row_type(sides[-1].rows, netting)
    texts = old.simpleString() != new.simpleString()
    shaped = [_shape(one, netting, old, new, texts=texts) for one in sides]
    rows = reduce(DataFrame.unionByName, shaped)
    keys = [quote(c) for c in rows.columns if c.startswith(_KEY)]
    places = [quote(c) for c in rows.columns if c.startswith(_PLACE)]
    if places:
        of_place = f"OVER (PARTITION BY {VERSION}, {', '.join(places)})"
        rows = rows.withColumn("__place_ts", F.expr(f"max(CASE WHEN {_CAME} THEN __ts END) {of_place}"))
    else:
        rows = rows.withColumn("__place_ts", F.lit(None).cast("bigint"))
    lives = f"{_CAME} AND NOT {_DEAD}"
    net = rows.groupBy(VERSION, *keys).agg(
        F.expr(f"first(CASE WHEN {lives} THEN {NEW_ROW} END, true)").alias(NEW_ROW),
        F.expr(f"first(CASE WHEN NOT {_CAME} AND NOT {_DEAD} THEN {OLD_ROW} END, true)").alias(OLD_ROW),
        F.expr(f"max(CASE WHEN {lives} THEN __ts END)").alias("__live_ts"),
        F.expr(f"max(CASE WHEN {_CAME} THEN __ts END)").alias("__came_ts"),
        F.expr(f"max(CASE WHEN NOT {_CAME} THEN __place_ts END)").alias("__place_ts"),
        F.expr(f"max({AT})").alias(AT),
    )
    net = net.where(f"{NEW_ROW} IS NOT NULL OR {OLD_ROW} IS NOT NULL")
    net = net.withColumn(FIELDS, _differing(old, new))
    net = net.where(f"{NEW_ROW} IS NULL OR {OLD_ROW} IS NULL OR size({FIELDS}) > 0")
    operation = (
        f"CASE WHEN {OLD_ROW} IS NULL THEN 'INSERT' WHEN {NEW_ROW} IS NULL THEN 'DELETE' ELSE 'UPDATE' END"
    )
    commit_time = spell_commit_time(netting.unit, AT)
    time = (
        f"coalesce(CASE WHEN {NEW_ROW} IS NULL THEN coalesce(__came_ts, __place_ts) ELSE __live_ts END,"
        f" {commit_time})"
    )
    return net.withColumns({OPERATION: F.expr(operation), TIME: F.expr(time)}).select(
        VERSION, AT, OPERATION, TIME, FIELDS, NEW_ROW, OLD_ROW
    )


def spell_commit_time(unit: TimeUnit, at: str) -> str:
    """SQL for the time of a commit in the unit of a dataset."""
    return _PER_MICROSECOND[unit].format(at=at)


def columns_of(rows: DataFrame, netting: Netting) -> list[str]:
    """The columns that readers see, in the dataset's order."""
    there = [c for c in rows.columns if c not in METADATA_COLUMNS and not c.startswith("__")]
    return [c for c in netting.order if c in there] + [c for c in there if c not in netting.order]


def _row_type(rows: DataFrame, netting: Netting) -> StructType:
    return StructType([rows.schema[c] for c in columns_of(rows, netting)])


def _shape(one: Sides, netting: Netting, old: StructType, new: StructType, *, texts: bool) -> DataFrame:
    rows = one.rows
    columns = columns_of(rows, netting)
    own = StructType([rows.schema[c] for c in columns])

    def fit(wanted: StructType) -> Column:
        if own.simpleString() == wanted.simpleString():
            return F.struct(*(F.col(quote(c)) for c in columns))
        return F.lit(None).cast(wanted)

    def comparing(name: str) -> Column:
        value = F.col(quote(name)) if name in columns else F.lit(None).cast("string")
        return value.cast("string") if texts else value

    timed = SOURCE_TS in rows.columns
    placed = timed and set(netting.place) != set(netting.key) and set(netting.place) <= set(columns)
    named = {f"{_KEY}{i}": comparing(c) for i, c in enumerate(netting.key)}
    if placed:
        named |= {f"{_PLACE}{i}": comparing(c) for i, c in enumerate(netting.place)}
    return rows.select(
        one.version.cast("bigint").alias(VERSION),
        one.at.cast("timestamp").alias(AT),
        one.came.alias(_CAME),
        (F.col(DELETED) if DELETED in rows.columns else F.lit(False)).alias(_DEAD),
        (F.col(SOURCE_TS) if timed else F.lit(None)).cast("bigint").alias("__ts"),
        *(value.alias(name) for name, value in named.items()),
        fit(new).alias(NEW_ROW),
        fit(old).alias(OLD_ROW),
    )


def _differing(old: StructType, new: StructType) -> Column:
    """The names of the columns that differ, in the dataset's order. All if there is only one of the rows.

    Doubles are equal if they agree to 12 significant digits, as where rows are compared before writing.
    """
    before, after = ({f.name: f.dataType for f in row} for row in (old, new))
    alone = F.col(NEW_ROW).isNull() | F.col(OLD_ROW).isNull()
    names = []
    for name in (*after, *(name for name in before if name not in after)):
        differs = reduce(or_, _differs(name, before, after))
        shown = F.lit(name) if name in after else F.when(F.col(OLD_ROW).isNotNull(), F.lit(name))
        names.append(F.when(alone | differs, shown))
    return F.array_compact(F.array(*names))


def _differs(name: str, before: Mapping[str, DataType], after: Mapping[str, DataType]) -> list[Column]:
    """Conditions of which one holds if the column differs."""
    then, now = (F.col(f"{row}.{quote(name)}") for row in (OLD_ROW, NEW_ROW))
    if name not in before:
        return [now.isNotNull()]
    if name not in after:
        return [then.isNotNull()]
    if before[name].simpleString() != after[name].simpleString():
        return [now.isNotNull(), then.isNotNull()]
    return [~comparable(now, after[name]).eqNullSafe(comparable(then, before[name]))]
