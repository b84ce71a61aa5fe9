"""Which facts of complete exports are live, found the plain way.

A record is live while every later export has its key. This shares nothing with the deleting facts that a run
derives from neighbouring exports (`exports`), which it judges.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.keys import rank, user_columns
from strandline.model.columns import DELETED, INGESTED_AT, POSITION, quote
from strandline.model.project import Calendar, FactDataset

from .decode import ACCEPTED, OUTCOME, QUARANTINED, decode

_LIVE, _NAME, _PART, _NTH, _AT, _NEWEST = "_live", "__name", "__part", "__nth", "__at", "__newest"


def expect_live(received: DataFrame, dataset: FactDataset, calendar: Calendar) -> DataFrame:
    """Key and position of each live fact.

    That is the newest fact of its key, if every export after its own has the key and none of them is empty.
    """
    key = _key(dataset)
    place = {_NAME: F.col(f"{POSITION}.name"), _PART: F.col(f"{POSITION}.part")}
    rows = decode(received.where(F.col(f"{POSITION}.place") > 0), dataset, calendar).withColumns(place)
    exports = _rank_exports(rows.where(F.col(OUTCOME) == ACCEPTED), dataset).localCheckpoint(eager=True)
    count, emptied = exports.count(), _last_emptied(received, exports)
    rows = rows.join(F.broadcast(exports.select(_NAME, _PART, _NTH)), [_NAME, _PART])
    newest = _newest(rows.where(F.col(OUTCOME) == ACCEPTED), dataset, [_NTH])
    # A row whose other values do not fit keeps its record alive and does not change it.
    with_key = reduce(and_, (F.col(quote(c)).isNotNull() for c in key))
    has = rows.where((F.col(OUTCOME) == ACCEPTED) | ((F.col(OUTCOME) == QUARANTINED) & with_key))
    has = has.select(*map(quote, key), F.col(_NTH).alias("__has")).distinct()
    later = newest.join(has, list(key)).where(F.col("__has") > F.col(f"{_NEWEST}.{_NTH}"))
    counted = later.groupBy(*map(quote, key)).agg(F.count(F.lit(1)).alias("__later"))
    nth = F.col(f"{_NEWEST}.{_NTH}")
    stays = (
        (F.coalesce("__later", F.lit(0)) == F.lit(count) - nth)
        & (nth > emptied)
        & ~F.col(f"{_NEWEST}.{DELETED}")
    )
    return (
        newest.join(counted, list(key), "left")
        .where(stays)
        .select(*map(quote, key), F.col(f"{_NEWEST}.{POSITION}"))
    )


def find_live(facts: DataFrame, dataset: FactDataset) -> DataFrame:
    """Key and position of each winning fact that is not a deleting one. Derived facts take part."""
    newest = _newest(facts, dataset, [])
    return newest.where(~F.col(f"{_NEWEST}.{DELETED}")).select(
        *map(quote, _key(dataset)), F.col(f"{_NEWEST}.{POSITION}")
    )


def mark_live(facts: DataFrame, live: DataFrame, dataset: FactDataset) -> DataFrame:
    """Facts with a column that says which of them are live."""
    marked = facts.join(live.withColumn(_LIVE, F.lit(True)), [*_key(dataset), POSITION], "left")
    return marked.withColumn(_LIVE, F.coalesce(_LIVE, F.lit(False)))


def _key(dataset: FactDataset) -> Sequence[str]:
    assert dataset.record_set is not None
    return dataset.record_set.key


def _newest(facts: DataFrame, dataset: FactDataset, beside: Sequence[str]) -> DataFrame:
    """By key: the fact of the highest rank. Of two exports of one rank the later is right."""
    assert dataset.record_set is not None
    order_by = [c for c in dataset.record_set.order_by if c != POSITION]
    declared = [c for c in user_columns(facts.columns) if not c.startswith("__")]
    row = F.max_by(F.struct(POSITION, DELETED, *beside), rank([*order_by, POSITION], declared)).alias(_NEWEST)
    return facts.groupBy(*map(quote, _key(dataset))).agg(row)


def _rank_exports(rows: DataFrame, dataset: FactDataset) -> DataFrame:
    """Every export that has rows, numbered from 1: by `order_by`, then by position."""
    assert dataset.record_set is not None
    order_by = [
        F.max(quote(c)).alias(f"__o{i}") for i, c in enumerate(dataset.record_set.order_by) if c != POSITION
    ]
    exports = rows.groupBy(_NAME, _PART).agg(F.min(INGESTED_AT).alias(_AT), *order_by)
    ordered = [c for c in exports.columns if c.startswith("__o")]
    return exports.withColumn(_NTH, F.row_number().over(Window.orderBy(*ordered, _NAME, _PART)))


def _last_emptied(received: DataFrame, exports: DataFrame) -> int:
    """The highest number of an export that is followed by an empty one, or 0.

    An empty export ranks after the newest one received before it.
    """
    empty = received.where(F.col(f"{POSITION}.place") == 0).select(F.col(INGESTED_AT).alias("__emptied_at"))
    highest = exports.join(empty, F.col(_AT) <= F.col("__emptied_at")).agg(F.max(_NTH)).collect()
    return int(highest[0][0] or 0)
