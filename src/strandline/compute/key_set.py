"""A scope of keys: a set of key hashes, few enough to list, or staged in a file."""

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
"""The limit whatever the threshold: more would not fit into this process."""
VALUE = "__value"
"""The column beside `_key` with the value that a hash stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The key hashes a task covers, and the number of changed rows they came from."""

    count: int
    rows: int
    listed: tuple[int, ...] | None
    """The hashes. None if there are too many."""
    staged: Staged | None
    """The same in a file. None if they are few."""
    values: Mapping[int, object] = field(default_factory=dict)
    """The value that each hash stands for: a cursor's value or a partition's name.

    Only for small scopes that need it.
    """

    def restrict(self, rows: DataFrame, key: Column) -> DataFrame:
        """The rows whose key hash is in the scope."""
        if self.staged is None:
            # As text, because each value that is passed on is a call to the JVM.
            listed = ", ".join(map(str, self.listed or ())) or "NULL"
            return rows.withColumn("__scope", key).where(f"__scope IN ({listed})").drop("__scope")
        scope = self.staged.read(rows.sparkSession).select(F.col(KEY).alias("__scope"))
        return (
            rows.withColumn("__scope", key).join(F.broadcast(scope), "__scope", "left_semi").drop("__scope")
        )


def find_keys(work: Work, rows: DataFrame, *, held: int | None = None) -> KeySet:
    """The distinct hashes in `_key` of these rows, with the values they stand for if the rows have them.

    At most `held` of them are held in memory. More stay in a file, without their values.
    """
    most = min(work.project.settings.thresholds.held_keys if held is None else held, _MOST_HELD)
    valued = [F.min(VALUE).alias(VALUE), (~_same_value()).alias("mixed")] if VALUE in rows.columns else []
    grouped = rows.groupBy(KEY).agg(F.count(F.lit(1)).alias("n"), *valued)
    head = grouped.limit(most + 1).toArrow()
    if head.num_rows <= most:
        hashes = head.column(KEY).to_pylist()
        keys = list_keys(work, hashes, sum(head.column("n").to_pylist()))
        # If two values share a hash, only the hash defines the scope.
        unambiguous = valued and not any(head.column("mixed").to_pylist())
        values = _read_values(head) if unambiguous else None
        return keys if values is None else replace(keys, values=dict(zip(hashes, values, strict=True)))
    staged = stage(grouped, f"{work.staging}/keys", {"keys": F.count(F.lit(1)), "rows": F.sum("n")})
    return KeySet(count=staged.counts["keys"], rows=staged.counts["rows"], listed=None, staged=staged)


def _read_values(head: pa.Table) -> list[object] | None:
    """The values of the hashes.

    None if Python cannot represent one, such as a timestamp after the year 9999.
    """
    try:
        return list(head.column(VALUE).to_pylist())
    except (ValueError, OverflowError):
        return None


def _same_value() -> Column:
    """Whether all rows of a group have the same value, or none has one."""
    return F.min(VALUE).eqNullSafe(F.max(VALUE)) & F.count(VALUE).isin(F.lit(0), F.count(F.lit(1)))


def find_added_keys(work: Work, dataset: str) -> KeySet:
    """The hashes of the rows added to an append-only input since the cursor."""
    after, upto = work.after(dataset), work.version(dataset)
    if count_added(work.lake.table(dataset), after, upto) > work.project.settings.thresholds.held_keys:
        return find_keys(work, work.read_added(dataset).select(KEY))
    column = read_added_column(work.lake, dataset, after, upto, KEY)
    return list_keys(work, column.unique().to_pylist(), len(column))


def read_own(work: Work, keys: KeySet) -> DataFrame:
    """The output's own rows of a scope, including deleted ones."""
    assert work.own_version is not None
    if keys.listed is not None:
        rows = work.shared.small.find_rows(work.session, work.node.name, work.own_version, KEY, keys.listed)
        if rows is not None:
            return rows
    return keys.restrict(work.read(work.node.name, work.own_version), F.col(KEY))


def list_keys(work: Work, hashes: Sequence[int], rows: int) -> KeySet:
    if len(hashes) <= work.project.settings.thresholds.listed_keys:
        return KeySet(count=len(hashes), rows=rows, listed=tuple(hashes), staged=None)
    path = f"{work.staging}/keys.parquet"
    write_parquet(pa.table({KEY: pa.array(hashes, pa.int64())}), path)
    staged = Staged(path=path, schema=StructType([StructField(KEY, LongType())]), counts={})
    return KeySet(count=len(hashes), rows=rows, listed=tuple(hashes), staged=staged)
