"""A scope of keys: a set of key hashes, few enough to name, or aside in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from strandline.lake.location import write_parquet
from strandline.lake.log import count_added
from strandline.lake.reads import read_added_column
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import KEY

_MOST_HELD = 10_000_000
"""Whatever the threshold: more would not fit into this process."""
VALUE = "__value"
"""The column beside `_key` that says what a hash stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The key hashes a task covers, and how many changed rows they came from."""

    count: int
    rows: int
    listed: tuple[int, ...] | None
    """The hashes; None where there are too many."""
    staged: Staged | None
    """The same aside; None where they are few."""
    values: Mapping[int, object] = field(default_factory=dict)
    """By hash: what it stands for, where a scope is asked for it and not too large: a cursor's value, a partition's name."""

    def restrict(self, rows: DataFrame, key: Column) -> DataFrame:
        """The rows whose key hash is in the scope."""
        if self.staged is None:
            # As text: a value handed over is a call to the JVM each.
            listed = ", ".join(map(str, self.listed or ())) or "NULL"
            return rows.withColumn("__scope", key).where(f"__scope IN ({listed})").drop("__scope")
        wanted = self.staged.read(rows.sparkSession).select(F.col(KEY).alias("__scope"))
        return (
            rows.withColumn("__scope", key).join(F.broadcast(wanted), "__scope", "left_semi").drop("__scope")
        )


def find_keys(work: Work, found: DataFrame, *, held: int | None = None) -> KeySet:
    """The distinct hashes of rows that have one in `_key`, with the values they stand for if `found` has them.

    At most `held` of them are held here; more stay in a file, without their values.
    """
    most = min(work.project.settings.thresholds.held_keys if held is None else held, _MOST_HELD)
    valued = [F.min(VALUE).alias(VALUE), (~_same_value()).alias("mixed")] if VALUE in found.columns else []
    grouped = found.groupBy(KEY).agg(F.count(F.lit(1)).alias("n"), *valued)
    head = grouped.limit(most + 1).toArrow()
    if head.num_rows <= most:
        hashes = head.column(KEY).to_pylist()
        keys = list_keys(work, hashes, sum(head.column("n").to_pylist()))
        # Two values with one hash: then the hash alone tells the scope.
        told = valued and not any(head.column("mixed").to_pylist())
        values = _read_values(head) if told else None
        return keys if values is None else replace(keys, values=dict(zip(hashes, values, strict=True)))
    staged = stage(grouped, f"{work.staging}/keys", {"keys": F.count(F.lit(1)), "rows": F.sum("n")})
    return KeySet(count=staged.counts["keys"], rows=staged.counts["rows"], listed=None, staged=staged)


def _read_values(head: pa.Table) -> list[object] | None:
    """What the hashes stand for; None where Python cannot hold it, such as a timestamp after the year 9999."""
    try:
        return list(head.column(VALUE).to_pylist())
    except (ValueError, OverflowError):
        return None


def _same_value() -> Column:
    """Whether all rows of a group have one value, or none has any."""
    return F.min(VALUE).eqNullSafe(F.max(VALUE)) & F.count(VALUE).isin(F.lit(0), F.count(F.lit(1)))


def find_added_keys(work: Work, dataset: str) -> KeySet:
    """The hashes of the rows added to an append-only input since the cursor."""
    after, upto = work.after(dataset), work.version(dataset)
    if count_added(work.lake.table(dataset), after, upto) > work.project.settings.thresholds.held_keys:
        return find_keys(work, work.read_added(dataset).select(KEY))
    column = read_added_column(work.lake, dataset, after, upto, KEY)
    return list_keys(work, column.unique().to_pylist(), len(column))


def read_own(work: Work, keys: KeySet) -> DataFrame:
    """The output's own rows of a scope, deleted ones included."""
    assert work.own_version is not None
    if keys.listed is not None:
        found = work.shared.small.find_rows(work.session, work.node.name, work.own_version, KEY, keys.listed)
        if found is not None:
            return found
    return keys.restrict(work.read(work.node.name, work.own_version), F.col(KEY))


def list_keys(work: Work, hashes: Sequence[int], rows: int) -> KeySet:
    if len(hashes) <= work.project.settings.thresholds.listed_keys:
        return KeySet(count=len(hashes), rows=rows, listed=tuple(hashes), staged=None)
    path = f"{work.staging}/keys.parquet"
    write_parquet(pa.table({KEY: pa.array(hashes, pa.int64())}), path)
    staged = Staged(path=path, schema=StructType([StructField(KEY, LongType())]), counts={})
    return KeySet(count=len(hashes), rows=rows, listed=tuple(hashes), staged=staged)
