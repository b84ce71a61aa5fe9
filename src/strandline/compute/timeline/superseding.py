"""Compare what a task computed with what is published, and make the one write that follows (ADR 14).

Only dates whose values differ are written. A commit that replaces or removes a row of a key, or puts one on
or before its watermark, raises the epoch of the key by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import signatures
from strandline.lake.staging import Staged, stage
from strandline.lake.work import NEW, OLD, SIDE, Prepared, Work, Write
from strandline.lake.writes import Superseding
from strandline.model.columns import CONFIG, DELETED, HEAD, KEY, ROLE, Role, quote
from strandline.model.commits import Operation
from strandline.model.key_states import REPROCESSING
from strandline.model.scope import Scope
from strandline.model.timeline import DATE, EPOCH
from strandline.sql.literals import spark_literal

from .layout import HEAD_TYPE, hash_head_sql, hash_row, name_values, spell_head

HAD_HEAD, OLD_EPOCH, OLD_WATERMARK, HEAD_DIFFERS = "__had_head", "__old_epoch", "__old_watermark", "__differs"
"""What a candidate for a head has beside its own columns.

They contain whether the key is known, its epoch and its watermark before this commit, and whether the head
differs from the published one.
"""
_NEW_EPOCH = "__new_epoch"
_AS_HEAD = "head"
"""The third value of `__side`, until the epoch is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What a task computed, and what is published of the same keys and dates."""

    key: Sequence[str]
    values: Sequence[str]
    """The columns beside key, date and epoch."""
    new: DataFrame
    """Key, date and values: one row per key and date."""
    old: DataFrame | None
    """Published rows of the same keys and dates, with their metadata. None if there are none."""
    heads: DataFrame
    """One row per key with `_head` as it shall be, values if heads have some, and the columns above."""


def stage_superseding(work: Work, candidates: Candidates) -> Staged:
    """Stage the rows and heads that come and the rows that leave."""
    key, values = candidates.key, candidates.values
    columns = [*map(quote, key), DATE, *map(quote, values)]
    sides = _tag(candidates.new.select(*columns), NEW)
    sides = sides.unionByName(_tag(candidates.heads, _AS_HEAD), allowMissingColumns=True)
    if candidates.old is not None:
        old = candidates.old.select(*columns, EPOCH, KEY, CONFIG)
        sides = sides.unionByName(_tag(old, OLD), allowMissingColumns=True)
        # Once by key: both comparisons, of a date and of a key, then need no other shuffle.
        sides = _keep_differing(sides.repartition(*map(quote, key)), candidates)
    of_key = f"OVER (PARTITION BY {', '.join(map(quote, key))})"
    is_new = f"{SIDE} = '{NEW}'"
    found = {
        "__leaves": f"max({SIDE} = '{OLD}') {of_key}",
        "__first_new": f"min(CASE WHEN {is_new} THEN {DATE} END) {of_key}",
        "__complete": f"max(CASE WHEN {HAD_HEAD} THEN {OLD_WATERMARK} END) {of_key}",
        "__epoch": f"coalesce(max({OLD_EPOCH}) {of_key}, 0L)",
        "__news": f"count_if({is_new}) {of_key}",
    }
    sides = sides.withColumns({name: F.expr(sql) for name, sql in found.items()})
    restated = "__leaves OR coalesce(__first_new <= __complete, false)"
    sides = sides.withColumn("__restated", F.expr(restated))
    sides = sides.withColumns(
        {
            _NEW_EPOCH: F.expr("__epoch + CASE WHEN __restated THEN 1L ELSE 0L END"),
            # The shares of a key that is not restated add up to 1, so their sum is the number of such keys.
            "__share": F.expr(f"CASE WHEN {is_new} AND NOT __restated THEN 1D / __news END"),
        }
    )
    sides = sides.where(f"{SIDE} != '{_AS_HEAD}' OR __restated OR {HEAD_DIFFERS}")
    return _stage(work, _finish(work, sides, candidates), candidates)


def make_first_rows(work: Work, candidates: Candidates, *, one_file: bool, order: Sequence[str]) -> DataFrame:
    """Everything that was computed as rows of a new table, in which every key begins with epoch 0.

    Rows are in an order within each file, heads in that of their keys. They are sorted before they get the
    columns that all of them have: Spark copies what it sorts.
    """
    columns = [*map(quote, candidates.key), DATE, *map(quote, candidates.values)]
    rows, heads = candidates.new.select(*columns), candidates.heads
    if one_file:
        rows, heads = rows.coalesce(1), heads.coalesce(1)
    rows = _tag(rows.sortWithinPartitions(*map(quote, order)), NEW)
    heads = _tag(heads.sortWithinPartitions(*map(quote, candidates.key)), _AS_HEAD)
    both = rows.unionByName(heads, allowMissingColumns=True).withColumn(_NEW_EPOCH, F.lit(0).cast("bigint"))
    return _finish(work, both, candidates).select(*map(quote, _table_columns(candidates)))


def _tag(rows: DataFrame, side: str) -> DataFrame:
    return rows.withColumn(SIDE, F.lit(side))


def _keep_differing(rows: DataFrame, candidates: Candidates) -> DataFrame:
    """Heads, and the rows of the dates on which new and published values differ."""
    first, second = signatures(rows, candidates.values)
    of_date = f"OVER (PARTITION BY {', '.join(map(quote, candidates.key))}, {DATE})"
    rows = rows.withColumns({"__s1": first, "__s2": second})
    same = (  # a head has no date, and is alone there
        f"count(*) {of_date} = 2 AND min({SIDE}) {of_date} != max({SIDE}) {of_date}"
        f" AND min(__s1) {of_date} = max(__s1) {of_date} AND min(__s2) {of_date} = max(__s2) {of_date}"
    )
    return rows.withColumn("__same", F.expr(same)).where("NOT __same").drop("__s1", "__s2", "__same")


def _finish(work: Work, rows: DataFrame, candidates: Candidates) -> DataFrame:
    """The rows with the columns of the table. The epoch of a row that leaves stays in `epoch`."""
    is_head, is_old = f"{SIDE} = '{_AS_HEAD}'", f"{SIDE} = '{OLD}'"
    now, config = spark_literal(work.as_of), spark_literal(work.config.hash)
    assert now is not None
    head = {f.name: f"{HEAD}.{f.name}" for f in HEAD_TYPE}
    head["updated_at"] = now
    head["replaces"] = f"CASE WHEN {HAD_HEAD} THEN __hash END"
    leaves = {"superseded_by": _NEW_EPOCH, "superseded_at": now, "replaces": KEY}
    lacks = EPOCH not in rows.columns  # where nothing leaves
    epoch, own_hash, kept = (
        f"CAST(NULL AS {kind})" if lacks else name
        for name, kind in ((EPOCH, "BIGINT"), (KEY, "BIGINT"), (CONFIG, "STRING"))
    )
    if lacks:
        leaves["replaces"] = own_hash
    by_side = f"CASE WHEN {is_head} THEN {hash_head_sql(candidates.key)} ELSE {hash_row(candidates.key)} END"
    rows = rows.withColumn("__hash", F.expr(by_side))
    columns = {
        EPOCH: f"CASE WHEN {is_old} THEN {epoch} ELSE {_NEW_EPOCH} END",
        HEAD: f"CASE WHEN {is_head} THEN {spell_head(head)} WHEN {is_old} THEN {spell_head(leaves)} END",
        KEY: "__hash",
        DELETED: is_head,
        ROLE: f"CASE WHEN {is_head} THEN '{Role.HEAD}' ELSE '{Role.ROW}' END",
        CONFIG: f"CASE WHEN {is_old} THEN {kept} ELSE {config} END",
        SIDE: f"CASE WHEN {is_head} THEN '{NEW}' ELSE {SIDE} END",
    }
    return rows.withColumns({name: F.expr(sql) for name, sql in columns.items()})


def _stage(work: Work, rows: DataFrame, candidates: Candidates) -> Staged:
    is_head = f"{ROLE} = '{Role.HEAD}'"
    new, old = f"{SIDE} = '{NEW}' AND NOT {is_head}", f"{SIDE} = '{OLD}'"
    counts = {
        "new_rows": F.expr(f"count_if({new})"),
        "old_rows": F.expr(f"count_if({old})"),
        "heads": F.expr(f"count_if({is_head})"),
        "known_heads": F.expr(f"count_if({is_head} AND {HAD_HEAD})"),
        "restated_keys": F.expr(f"count_if({is_head} AND __restated)"),
        "appended_keys": F.expr("round(sum(__share))"),
        "from": F.expr(f"min(CASE WHEN {old} THEN unix_date({DATE}) END)"),
        "to": F.expr(f"max(CASE WHEN {old} THEN unix_date({DATE}) END)"),
    }
    columns = [*_table_columns(candidates), SIDE]
    counted = rows.select(*map(quote, columns), HAD_HEAD, "__restated", "__share")
    return stage(counted, f"{work.staging}/differences", counts).only(columns)


def _table_columns(candidates: Candidates) -> list[str]:
    return [*candidates.key, DATE, *candidates.values, EPOCH, KEY, DELETED, CONFIG, ROLE, HEAD]


def write_superseding(
    work: Work,
    staged: Staged,
    key: Sequence[str],
    *,
    scope: Scope,
    rows_read: int,
    rows_full: int,
    whole: bool,
    within: Sequence[tuple[date | None, date | None]] = ((None, None),),
) -> Prepared:
    """The write that publishes what was staged. It is None if nothing differs.

    `within` are ranges of dates, the ends excluded, that contain every row that leaves.
    """
    counts = staged.counts
    prepared = Prepared(
        write=None,
        scope=scope,
        rows_read=rows_read,
        rows_full=rows_full,
        live_rows=work.live_rows,
        whole=whole,
        task_counts={"restated": counts["restated_keys"], "appended": counts["appended_keys"]},
    )
    rows = staged.read(work.session)
    if not counts["new_rows"] + counts["old_rows"] + counts["heads"]:
        # A full recompute that changes no row still records that every row is what this configuration gives.
        write = Write(operation=Operation.COUNTS, rows=rows.drop(SIDE)) if whole and work.stale else None
        return replace(prepared, write=write)
    return replace(
        prepared,
        write=_make_write(staged, _set_aside(rows), key, within),
        rows_written=counts["new_rows"],
        live_rows=work.live_rows + counts["new_rows"] - counts["old_rows"],
        changes=staged,
    )


def count_task(
    prepared: Prepared, keys: int, *, failed: int = 0, unplaced: int = 0, waiting: int = 0
) -> Prepared:
    """The outcome of a task with its counts. All but `unplaced`, which are facts, are keys.

    In a new table every key is one that was appended.
    """
    counts = {
        "keys": keys,
        "restated": 0,
        "appended": keys - failed,
        **prepared.task_counts,
        "failed": failed,
        "unplaced": unplaced,
        REPROCESSING: waiting,
    }
    return replace(prepared, task_counts=counts)


def _make_write(
    staged: Staged, rows: DataFrame, key: Sequence[str], within: Sequence[tuple[date | None, date | None]]
) -> Write:
    counts = staged.counts
    if not counts["old_rows"] + counts["known_heads"]:
        return Write(operation=Operation.APPEND, rows=rows)
    dates: list[tuple[date, date]] = []
    if counts["old_rows"]:
        first, last = _to_date(counts["from"]), _to_date(counts["to"])
        for start, end in within:
            low = max(start or first, first)
            high = min(end - timedelta(days=1) if end else last, last)
            dates += [(low, high)] if low <= high else []
    superseding = Superseding(
        key=tuple(key),
        dates=tuple(dates),
        heads=counts["known_heads"] > 0,
        among=name_values(staged, staged.schema, key),
    )
    return Write(operation=Operation.REPLACE_KEYS, rows=rows, superseding=superseding)


def _set_aside(rows: DataFrame) -> DataFrame:
    """The rows to write: what comes, and what leaves as superseded rows."""
    leaves = f"{SIDE} = '{OLD}'"
    columns = {
        ROLE: f"CASE WHEN {leaves} THEN '{Role.EPOCH}' ELSE {ROLE} END",
        DELETED: f"{leaves} OR {DELETED}",
        KEY: f"CASE WHEN NOT {leaves} THEN {KEY} END",
    }
    return rows.withColumns({name: F.expr(sql) for name, sql in columns.items()}).drop(SIDE)


def _to_date(days: int) -> date:
    return date(1970, 1, 1) + timedelta(days=days)
