"""A scope of keys: a set of key hashes, few enough to name or staged aside."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import KEY

FEW = 2000
"""So many hashes are a filter inside each scan, which needs no job of its own (on a small scope jobs are the cost); more are joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The key hashes a task covers, and how many changed rows they came from."""

    count: int
    rows: int
    few: tuple[int, ...] = ()
    staged: Staged | None = None

    def restrict(self, rows: DataFrame, key: Column) -> DataFrame:
        """The rows whose key hash is in the scope."""
        if self.staged is None:
            return rows.where(key.isin(list(self.few)))
        wanted = self.staged.read(rows.sparkSession).select(F.col(KEY).alias("__scope"))
        return rows.withColumn("__scope", key).join(F.broadcast(wanted), "__scope", "left_semi").drop("__scope")


def find_keys(work: Work, found: DataFrame, rows: int | None = None) -> Keys:
    """The distinct hashes of rows that have one in `_key`. `rows`: how many rows there are, where that is known."""
    grouped = found.groupBy(KEY).agg(F.count(F.lit(1)).alias("n"))
    if rows is None or rows <= FEW:
        head = grouped.limit(FEW + 1).collect()
        if len(head) <= FEW:
            return Keys(count=len(head), rows=sum(r["n"] for r in head), few=tuple(r[KEY] for r in head))
    staged = stage(grouped, f"{work.staging}/keys", {"keys": F.count(F.lit(1)), "rows": F.sum("n")})
    return Keys(count=staged.counts["keys"], rows=staged.counts["rows"], staged=staged)
