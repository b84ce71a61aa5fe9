"""Compare before writing: only key hashes whose rows differ are written, and what differs is what readers are told."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.lake.staging import Staged, stage
from strandline.lake.work import GONE, NEW, OLD, SIDE, Prepared, Work, Write
from strandline.lake.writes import Within
from strandline.model.columns import CONFIG, DELETED, KEY, POSITION, quote
from strandline.model.records import Operation

from .exports import LAST_PLACE
from .keys import signatures, user_columns

LEAVES = "__leaves"


def stage_differences(
    work: Work, sides: DataFrame, compared: Sequence[str], *, bury: bool, leaves: Column | None = None, strays: Column | None = None
) -> Staged:
    """From the new and the old rows of a scope (told apart by `__side`), stage those of the key hashes that differ as multisets.

    `bury`: a hash without new rows gets one `_deleted` row. Snapshots bring their own deleted rows and bury nothing.
    `leaves` marks old rows whose record will no longer be live, for the guard; `strays` old rows that the scope was not meant to reach.
    """
    first, second = signatures(sides, compared)
    of_key = Window.partitionBy(KEY)
    new, old = F.col(SIDE) == NEW, F.col(SIDE) == OLD

    def total(side: Column, column: str) -> Column:
        return F.sum(F.when(side, F.col(column)).otherwise(F.lit(0))).over(of_key)

    rows = sides.withColumns({"__s1": first, "__s2": second, "__one": F.lit(1)})
    balance = [total(new, c) - total(old, c) for c in ("__one", "__s1", "__s2")]
    rows = rows.withColumns({"__d0": balance[0], "__d1": balance[1], "__d2": balance[2], "__new": total(new, "__one")})
    rows = rows.where((F.col("__d0") != 0) | (F.col("__d1") != 0) | (F.col("__d2") != 0))
    if bury:
        once = F.row_number().over(of_key.orderBy("__s1", "__s2"))
        rows = rows.withColumn("__nth", once)
        buried = old & (F.col("__new") == 0) & (F.col("__nth") == 1)
        rows = rows.withColumn(SIDE, F.explode(F.when(buried, F.array(F.lit(OLD), F.lit(GONE))).otherwise(F.array(F.col(SIDE)))))
        rows = _blank_gone(rows, work.node.key)
    rows = rows.withColumn(LEAVES, F.lit(False) if leaves is None else leaves)
    live = ~F.col(DELETED)
    counts = {
        "new_rows": F.count_if(F.col(SIDE) != OLD),
        "new_live": F.count_if((F.col(SIDE) == NEW) & live),
        "old_live": F.count_if((F.col(SIDE) == OLD) & live),
        "gone": F.count_if(F.col(SIDE) == GONE),
        "strays": F.count_if((F.col(SIDE) == OLD) & strays) if strays is not None else F.count_if(F.lit(False)),
        "leaving": F.count_if(F.col(LEAVES)),
        "emptied": F.count_if((F.col(SIDE) == NEW) & (F.col(f"{POSITION}.place") == LAST_PLACE))
        if POSITION in rows.columns
        else F.count_if(F.lit(False)),
    }
    kept = [c for c in rows.columns if not c.startswith("__") or c == SIDE]
    return stage(rows, f"{work.staging}/differences", counts).only(kept)


def _blank_gone(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The row of a vanished key keeps its key and nothing else."""
    gone = F.col(SIDE) == GONE
    blanked = {c: F.when(~gone, F.col(quote(c))) for c in user_columns(rows.columns) if c not in key and not c.startswith("__")}
    return rows.withColumns({**blanked, DELETED: F.col(DELETED) | gone})


def replace_differences(
    work: Work, staged: Staged, *, rows_read: int, rows_full: int, scope: str, whole: bool, within: Within | None = None
) -> Prepared:
    """The write that makes the output equal to the new rows, or none when nothing differs."""
    counts = staged.counts
    rows = staged.read(work.session).where(F.col(SIDE) != OLD).drop(SIDE)
    if not counts["new_rows"]:
        # A recompute of everything that changes no row still says that every row is what this configuration gives.
        write = Write(operation=Operation.COUNTS, rows=rows) if whole and work.stale else None
        return Prepared(write=write, rows_read=rows_read, rows_full=rows_full, live_rows=work.live_rows, scope=scope, whole=whole)
    return Prepared(
        write=Write(operation=Operation.REPLACE_KEYS, rows=rows, within=within),
        rows_read=rows_read,
        rows_written=counts["new_live"],
        rows_full=rows_full,
        live_rows=work.live_rows + counts["new_live"] - counts["old_live"],
        scope=scope,
        whole=whole,
        changes=staged,
        tombstones=counts["gone"],
    )


def write_whole(work: Work, rows: DataFrame, *, rows_full: int, check: Callable[[DataFrame], None] = lambda _: None) -> Prepared:
    """The first write of a table, or one after its shape changed: nothing to compare with."""
    staged = stage(rows, f"{work.staging}/whole", {"live": F.count_if(~F.col(DELETED))})
    check(staged.read(work.session))
    return Prepared(
        write=Write(operation=Operation.OVERWRITE, rows=staged.read(work.session)),
        rows_read=rows_full,
        rows_written=staged.counts["live"],
        rows_full=rows_full,
        live_rows=staged.counts["live"],
        scope="everything",
        whole=True,
    )


def tag(rows: DataFrame, side: str) -> DataFrame:
    return rows.withColumn(SIDE, F.lit(side))


def compared_columns(rows: DataFrame, order_by: Sequence[str] = (), *, backfill: bool) -> list[str]:
    """What makes a key differ: declared columns, its order, whether it is deleted, and in a backfill the configuration."""
    declared = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    extra = [c for c in order_by if c not in declared]
    return [*declared, *extra, DELETED, *([CONFIG] if backfill else [])]
