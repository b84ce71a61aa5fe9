"""Compare before writing: only key hashes whose rows differ are written and announced to readers."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.lake.staging import Staged, stage
from strandline.lake.work import GONE, NEW, OLD, SIDE, Prepared, Work, Write
from strandline.lake.writes import Within
from strandline.model.columns import CONFIG, DELETED, KEY, LAST_PLACE, POSITION, SOURCE_AT, SOURCE_TS, quote
from strandline.model.commits import Operation
from strandline.model.scope import EVERYTHING, Scope

from .keys import signatures, user_columns

LEAVES, STRAYS = "__leaves", "__strays"


def stage_differences(
    work: Work,
    sides: DataFrame,
    compared: Sequence[str],
    *,
    bury: bool,
    leaves: Column | None = None,
    strays: Column | None = None,
) -> Staged:
    """Stage the rows of the key hashes whose new and old rows (see `__side`) differ as multisets.

    `bury`: a hash without new rows gets one `_deleted` row. Snapshots bring their own deleted rows and bury
    nothing. `leaves` marks old rows whose record will no longer be live, for the guard. `strays` marks old
    rows that the scope should not have reached.
    """
    first, second = signatures(sides, compared)
    of_key = f"OVER (PARTITION BY {KEY})"
    new, old, gone = (f"{SIDE} = '{side}'" for side in (NEW, OLD, GONE))

    def balance(column: str) -> Column:
        return F.expr(f"sum(CASE WHEN {new} THEN {column} WHEN {old} THEN -{column} ELSE 0 END) {of_key}")

    # Expressions are text: each column built in Python is a call to the JVM, which costs more than computing
    # few rows.
    rows = sides.withColumns({"__s1": first, "__s2": second})
    # Sums over pieces of 31 bits: two billion rows of one key cannot overflow a sum, and 93 bits do not agree
    # by chance.
    pieces = ("__s1 & 2147483647", "shiftrightunsigned(__s1, 33)", "__s2 & 2147483647")
    rows = rows.withColumns(
        {
            "__d0": balance("1"),
            **{f"__d{i}": balance(f"({piece})") for i, piece in enumerate(pieces, start=1)},
            "__new": F.expr(f"count_if({new}) {of_key}"),
        }
    )
    rows = rows.where("__d0 != 0 OR __d1 != 0 OR __d2 != 0 OR __d3 != 0")
    if bury:
        rows = rows.withColumn("__nth", F.expr(f"row_number() OVER (PARTITION BY {KEY} ORDER BY __s1, __s2)"))
        buried = f"{old} AND __new = 0 AND __nth = 1"
        rows = rows.withColumn(
            SIDE, F.expr(f"explode(CASE WHEN {buried} THEN array('{OLD}', '{GONE}') ELSE array({SIDE}) END)")
        )
        rows = _blank_gone(rows, work.node.key)
    rows = rows.withColumns(
        {
            LEAVES: F.lit(False) if leaves is None else leaves,
            STRAYS: F.lit(False) if strays is None else strays,
        }
    )
    emptied = f"{new} AND {POSITION}.place = {LAST_PLACE}" if POSITION in rows.columns else "false"
    conditions = {
        "new_rows": f"NOT {old}",
        "old_rows": old,
        "new_live": f"{new} AND NOT {DELETED}",
        "old_live": f"{old} AND NOT {DELETED}",
        "gone": gone,
        "strays": f"{old} AND {STRAYS}",
        "leaving": LEAVES,
        "emptied": emptied,
    }
    counts = {name: F.expr(f"count_if({condition})") for name, condition in conditions.items()}
    columns = [c for c in rows.columns if not c.startswith("__") or c == SIDE]
    return stage(rows, f"{work.staging}/differences", counts).only(columns)


def _blank_gone(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The row of a deleted key keeps its key and nothing else."""
    gone = f"{SIDE} = '{GONE}'"
    others = [c for c in user_columns(rows.columns) if c not in key and not c.startswith("__")]
    others += [c for c in (SOURCE_AT, SOURCE_TS) if c in rows.columns]  # those are of the row that leaves
    blanked = {c: F.expr(f"CASE WHEN NOT {gone} THEN {quote(c)} END") for c in others}
    return rows.withColumns({**blanked, DELETED: F.expr(f"{DELETED} OR {gone}")})


def replace_differences(
    work: Work,
    staged: Staged,
    *,
    rows_read: int,
    rows_full: int,
    scope: Scope,
    whole: bool,
    within: Within | None = None,
) -> Prepared:
    """The write that makes the output equal to the new rows. It is None if nothing differs."""
    counts = staged.counts
    rows = staged.read(work.session).where(F.col(SIDE) != OLD)
    if not counts["new_rows"]:
        # A full recompute that changes no row still records that every row is what this configuration gives.
        write = Write(operation=Operation.COUNTS, rows=rows.drop(SIDE)) if whole and work.stale else None
        return Prepared(
            write=write,
            rows_read=rows_read,
            rows_full=rows_full,
            live_rows=work.live_rows,
            scope=scope,
            whole=whole,
        )
    listed, near = _list_keys(work, staged)
    if listed:
        rows, within = rows.where(F.col(SIDE) == NEW), near
    return Prepared(
        write=Write(operation=Operation.REPLACE_KEYS, rows=rows.drop(SIDE), within=within, replaced=listed),
        rows_read=rows_read,
        rows_written=counts["new_live"],
        rows_full=rows_full,
        live_rows=work.live_rows + counts["new_live"] - counts["old_live"],
        scope=scope,
        whole=whole,
        changes=staged,
        tombstones=0 if listed else counts["gone"],
    )


def _list_keys(work: Work, staged: Staged) -> tuple[tuple[int, ...], Within | None]:
    """The hashes that differ, if they are few, and a range that covers their rows.

    The range is one of a column with statistics.
    """
    thresholds = work.project.settings.thresholds
    if staged.counts["new_rows"] + staged.counts["old_rows"] > thresholds.examined_rows:
        return (), None
    ranged = [c for c in work.project.indexed(work.node.name) if c in staged.schema.fieldNames()]
    differing = staged.fetch([KEY, SIDE, *ranged]).filter(pc.field(SIDE) != GONE)
    hashes = tuple(differing.column(KEY).unique().to_pylist())
    if len(hashes) > thresholds.named_keys:
        return (), None
    for column in ranged:
        values = differing.column(column)
        if pa.types.is_integer(values.type) and not values.null_count:
            return hashes, Within(column=column, low=pc.min(values).as_py(), high=pc.max(values).as_py())
    return hashes, None


def write_whole(
    work: Work, rows: DataFrame, *, rows_full: int, check: Callable[[DataFrame], None] = lambda _: None
) -> Prepared:
    """The first write of a table, or one after its shape changed: there is nothing to compare with."""
    staged = stage(rows, f"{work.staging}/whole", {"live": F.count_if(~F.col(DELETED))})
    check(staged.read(work.session))
    return Prepared(
        write=Write(operation=Operation.OVERWRITE, rows=staged.read(work.session)),
        rows_read=rows_full,
        rows_written=staged.counts["live"],
        rows_full=rows_full,
        live_rows=staged.counts["live"],
        scope=EVERYTHING,
        whole=True,
    )


def tag(rows: DataFrame, side: str) -> DataFrame:
    return rows.withColumn(SIDE, F.lit(side))


def compared_columns(rows: DataFrame, order_by: Sequence[str] = (), *, backfill: bool) -> list[str]:
    """The compared columns: declared ones, order, `_deleted`, and in a backfill the configuration."""
    declared = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    extra = [c for c in order_by if c not in declared]
    return [*declared, *extra, DELETED, *([CONFIG] if backfill else [])]
