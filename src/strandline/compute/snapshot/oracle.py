"""The snapshot of a record set, computed without the code that it judges (L2).

It uses every fact, and the columns of the key instead of its hash.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import rank, row_hash, user_columns
from strandline.model.columns import DELETED, POSITION, quote
from strandline.model.project import Children, FactDataset, RecordSet

_DAYS_OF_400_YEARS = 146_097
_NAME = "__name"
_RANK, _ROW, _HASH = "__rank", "__row", "__h"


def expect_snapshot(facts: DataFrame, dataset: FactDataset) -> DataFrame:
    """The live record of each key: the highest rank of all its facts (L3)."""
    record_set = dataset.record_set
    assert record_set is not None
    declared = [c for c in user_columns(facts.columns) if not c.startswith("__")]
    if record_set.children is Children.REPLACE:
        return _expect_children(facts, record_set, declared)
    order_by = (
        (*record_set.order_by, POSITION)
        if dataset.complete and POSITION not in record_set.order_by
        else record_set.order_by
    )
    key = [quote(c) for c in record_set.key]
    ranked = facts.withColumn(_RANK, rank(order_by, declared))
    newest = ranked.groupBy(*key).agg(F.max_by(F.struct(*map(quote, declared), DELETED), _RANK).alias(_ROW))
    rows = newest.where(~F.col(f"{_ROW}.{DELETED}")).select(*(F.col(_ROW)[c].alias(c) for c in declared))
    for column in record_set.latest_non_null:
        rows = rows.drop(column).join(_latest_non_null(ranked, key, column), list(record_set.key), "left")
    return rows.select(*map(quote, declared))


def _latest_non_null(ranked: DataFrame, key: list[str], column: str) -> DataFrame:
    """By key: the non-NULL value of the highest rank, among the facts after the last deleting one."""
    last = ranked.where(F.col(DELETED)).groupBy(*key).agg(F.max(_RANK).alias("__last"))
    names = [c.strip("`") for c in key]
    newer = ranked.join(last, names, "left").where(
        F.col("__last").isNull() | (F.col(_RANK) > F.col("__last"))
    )
    return (
        newer.where(F.col(quote(column)).isNotNull())
        .groupBy(*key)
        .agg(F.max_by(quote(column), _RANK).alias(column))
    )


def _expect_children(facts: DataFrame, record_set: RecordSet, declared: Sequence[str]) -> DataFrame:
    """The elements of the newest message about each parent.

    Messages are ranked by `order_by`, a hash over the list, and position.
    """
    parent = [quote(c) for c in record_set.parent_key]
    message = F.struct(
        *(F.col(quote(c)).alias(f"o{i}") for i, c in enumerate(record_set.order_by)),
        F.col(POSITION).alias("p"),
    )
    own = [c for c in record_set.key if c not in record_set.parent_key]
    is_marker = reduce(lambda so_far, c: so_far & F.col(quote(c)).isNull(), own, F.col(DELETED))
    counted = F.when(is_marker, F.lit(0)).otherwise(F.pmod(row_hash(declared), F.lit(1 << 45)))
    rows = facts.withColumns({"__message": message, _HASH: counted})
    elements = rows.groupBy(*(quote(c) for c in record_set.key), "__message").agg(
        F.max_by(F.struct(*map(quote, declared), DELETED), _HASH).alias(_ROW), F.max(_HASH).alias(_HASH)
    )
    lists = elements.groupBy(*parent, "__message").agg(
        F.sum(F.col(_HASH).cast("decimal(20,0)")).alias("__list")
    )
    order = [F.col(f"__message.o{i}").alias(f"o{i}") for i in range(len(record_set.order_by))]
    ranked = F.struct(*order, F.col("__list"), F.col("__message.p").alias("p"))
    newest = lists.groupBy(*parent).agg(F.max_by("__message", ranked).alias("__newest"))
    winners = elements.join(newest, [c.strip("`") for c in parent]).where(
        F.col("__message") == F.col("__newest")
    )
    return winners.where(~F.col(f"{_ROW}.{DELETED}")).select(*(F.col(_ROW)[c].alias(c) for c in declared))
