"""When rows left a view: the time of the fact that took each away."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import typed_key
from strandline.lake.work import Work
from strandline.model.columns import CONFIG, DELETED, KEY, SOURCE_AT, SOURCE_TS, quote
from strandline.model.publishing import View

_TIME = "__time"


def find_leaving(work: Work, view: View, old: DataFrame, new: DataFrame) -> DataFrame:
    """A deleted row for each published row whose key has none now, with the time at which it left.

    It is the time of the row that the dataset has under the same key, deleted or not. A row that is gone
    without one (a dropped block, a dropped child) has that of the rows that took its place.
    """
    key = [quote(c) for c in view.key]
    same = [F.col(f"o.{c}").eqNullSafe(F.col(f"n.{c}")) for c in key]
    gone = old.alias("o").join(new.select(*key).alias("n"), same, "left_anti")
    place = work.project.get(view.dataset).key
    rows = work.read_all(view.dataset)
    gone = _find_times(gone.select(*map(quote, dict.fromkeys((*view.key, *place)))), rows, view.key, "__own")
    if set(place) != set(view.key):
        gone = _find_times(gone, rows, place, "__of_place")
        time = F.coalesce(F.col("__own"), F.col("__of_place"))
    else:
        time = F.col("__own")
    return gone.withColumn(_TIME, time).select(
        *key,
        F.col(f"{_TIME}.at").alias(SOURCE_AT),
        F.col(f"{_TIME}.ts").alias(SOURCE_TS),
        typed_key(view.key).alias(KEY),
        F.lit(True).alias(DELETED),
        F.lit(work.config.hash).alias(CONFIG),
    )


def _find_times(gone: DataFrame, rows: DataFrame, columns: tuple[str, ...], name: str) -> DataFrame:
    """The newest time of the rows with the same values in some columns."""
    names = [quote(c) for c in columns]
    time = F.struct(F.col(SOURCE_TS).alias("ts"), F.col(SOURCE_AT).alias("at"))
    wanted = gone.select(*(F.col(c).alias(f"__w{i}") for i, c in enumerate(names))).distinct()
    same = [F.col(c).eqNullSafe(F.col(f"__w{i}")) for i, c in enumerate(names)]
    found = rows.join(F.broadcast(wanted), same, "inner")
    newest = found.groupBy(*(F.col(f"__w{i}") for i in range(len(names)))).agg(F.max(time).alias(name))
    matches = [F.col(c).eqNullSafe(F.col(f"__w{i}")) for i, c in enumerate(names)]
    joined = gone.join(newest, matches, "left")
    return joined.drop(*(f"__w{i}" for i in range(len(names))))
