"""The head of each key of a valuation: its epoch, its status, and the dates that wait."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.timeline.layout import CURRENT, FAILED, RANGE_TYPE, REPROCESSING, spell_head
from strandline.compute.timeline.superseding import HAD_HEAD, HEAD_DIFFERS, OLD_EPOCH, OLD_WATERMARK
from strandline.lake.work import Work
from strandline.model.columns import HEAD, KEY, quote
from strandline.model.timeline import DATE, EPOCH, Valuation

from .dates import Dates
from .grid import Grid
from .reach import END, START
from .resolving import KEY_HASH, MISSING
from .scope import NO_END, WAITS, Reached

_COMPARED = ("watermark_on", "status", "reason", "waits", "pending")
_WAITS, _WAITS_FOR, _FOLD, _WHY, _FIRST, _PENDING, _COMPUTED = (
    "__waits_on",
    "__waits_for",
    "__fold",
    "__why",
    "__first",
    "__pending",
    "__computed",
)
_OLD_HEAD = "__old_head"
_RANGES = f"array<{RANGE_TYPE.simpleString()}>"


def judge_heads(
    work: Work,
    valuation: Valuation,
    own: DataFrame | None,
    reached: Reached,
    missing: DataFrame | None,
    dates: Dates,
) -> DataFrame:
    """One head per key that is reached or whose fold fails, as it shall be, beside what it was.

    `missing` are the cells without a required reference. A key that is held because its fold fails keeps its
    watermark, and forgets what it waited for: it is computed anew. A key that waits for a later batch keeps
    everything else.
    """
    names = [quote(c) for c in valuation.timeline.key]
    heads = _with_failed(work, valuation, _collect_ranges(reached, names))
    published = None if own is None else work.read_heads(valuation.output, reached.kinds.hashes)
    heads = _with_published(heads, published, dates)
    heads = _with_waits(heads, missing).withColumn(_FIRST, F.expr(f"array_min({_WAITS})"))
    heads = heads.withColumn(HEAD, F.expr(spell_head(_judge(Grid.of(dates.business)))))
    same = " AND ".join(f"{HEAD}.{name} <=> {_OLD_HEAD}.{name}" for name in _COMPARED)
    differs = f"NOT ({HAD_HEAD} AND {same}) AS {HEAD_DIFFERS}"
    return heads.selectExpr(*names, HEAD, HAD_HEAD, OLD_EPOCH, OLD_WATERMARK, differs)


def _judge(grid: Grid) -> dict[str, str]:
    """The fields of a head as it shall be, in SQL."""
    place = grid.place_of(_FIRST)
    previous = f"CASE WHEN ({place}) > 0 THEN {grid.spell_date(f'({place}) - 1')} END"
    others = (
        f"CASE size({_WAITS}) WHEN 1 THEN '' WHEN 2 THEN ' and 1 other date'"
        f" ELSE concat(' and ', size({_WAITS}) - 1, ' other dates') END"
    )
    why = f"concat('no row of `', {_WAITS_FOR}, '` on ', CAST({_FIRST} AS STRING), {others})"
    held, marked, waits = f"{_FOLD} = '{FAILED}'", f"{_PENDING} IS NOT NULL", f"size({_WAITS}) > 0"
    return {
        "watermark_on": f"CASE WHEN {held} OR {marked} THEN {OLD_WATERMARK} WHEN {waits} THEN {previous} END",
        "status": f"CASE WHEN {held} THEN '{FAILED}' WHEN {marked} THEN '{REPROCESSING}'"
        f" WHEN {waits} THEN '{FAILED}' ELSE '{CURRENT}' END",
        "reason": f"CASE WHEN {held} THEN {_WHY} WHEN {marked} THEN {_OLD_HEAD}.reason"
        f" WHEN {waits} THEN {why} END",
        "waits": f"CASE WHEN {held} THEN NULL WHEN {marked} THEN {_OLD_HEAD}.waits"
        f" WHEN {waits} THEN {_WAITS} END",
        "pending": f"CASE WHEN NOT ({held}) AND {marked} THEN {_PENDING} END",
    }


def _with_failed(work: Work, valuation: Valuation, ranges: DataFrame) -> DataFrame:
    """The keys that are reached, whose folds do not fail, and those whose folds do."""
    history, names = valuation.timeline.output, map(quote, valuation.timeline.key)
    sound = ranges.withColumns({_FOLD: F.lit(CURRENT), _WHY: F.lit(None).cast("string")})
    hashes = work.list_failed(history)
    if hashes is not None and not len(hashes):
        return sound
    heads = work.read_heads(history, hashes).where(f"{HEAD}.status = '{FAILED}'")
    failed = heads.selectExpr(
        f"{KEY} AS {KEY_HASH}", *names, f"{HEAD}.status AS {_FOLD}", f"{HEAD}.reason AS {_WHY}"
    )
    return sound.unionByName(failed, allowMissingColumns=True)


def _collect_ranges(reached: Reached, names: Sequence[str]) -> DataFrame:
    """The ranges of each key that are computed now, and those that wait for a later batch (NULL if none)."""
    one = F.struct(F.col(START).alias("start"), F.col(END).alias("end"))
    if reached.kinds.once:
        now = F.when(F.col(WAITS), F.array().cast(_RANGES)).otherwise(F.array(one))
        waiting = F.when(F.col(WAITS), F.array(one))
        return reached.ranges.select(KEY_HASH, *names, now.alias(_COMPUTED), waiting.alias(_PENDING))
    later = F.sort_array(F.collect_set(F.when(F.col(WAITS), one)))
    return reached.ranges.groupBy(KEY_HASH, *names).agg(
        F.collect_list(F.when(~F.col(WAITS), one)).alias(_COMPUTED),
        F.when(F.max(WAITS), later).alias(_PENDING),
    )


def _with_waits(heads: DataFrame, missing: DataFrame | None) -> DataFrame:
    """The dates that wait for a reference: those that did and are not in a range, and those that do now."""
    inside = "(r.start IS NULL OR d >= r.start) AND (r.end IS NULL OR d < r.end)"
    computed = f"exists(coalesce({_COMPUTED}, array()), r -> {inside})"
    earlier = f"filter(coalesce({_OLD_HEAD}.waits, array()), d -> NOT {computed})"
    earlier_for = f"regexp_extract({_OLD_HEAD}.reason, '`(.*)`', 1)"
    if missing is None:
        return heads.withColumns({_WAITS: F.expr(earlier), _WAITS_FOR: F.expr(earlier_for)})
    now = missing.groupBy(KEY_HASH).agg(
        F.collect_set(DATE).alias("__now"), F.min_by(MISSING, DATE).alias("__now_for")
    )
    heads = heads.join(now, KEY_HASH, "left").withColumn("__earlier", F.expr(earlier))
    first_now = f"array_min(__now) < coalesce(array_min(__earlier), {NO_END})"
    return heads.withColumns(
        {
            _WAITS: F.expr("array_sort(array_union(__earlier, coalesce(__now, array())))"),
            _WAITS_FOR: F.expr(f"CASE WHEN {first_now} THEN __now_for ELSE {earlier_for} END"),
        }
    )


def _with_published(heads: DataFrame, published: DataFrame | None, dates: Dates) -> DataFrame:
    """Heads beside the published ones. A CURRENT key is complete up to the last date that was due."""
    if published is None:
        beside = {
            HAD_HEAD: "false",
            OLD_EPOCH: "0L",
            OLD_WATERMARK: "CAST(NULL AS DATE)",
            _OLD_HEAD: spell_head({}),
        }
    else:
        published = published.selectExpr(
            f"{KEY} AS {KEY_HASH}", f"{EPOCH} AS {OLD_EPOCH}", f"{HEAD} AS {_OLD_HEAD}"
        )
        heads = heads.join(published, KEY_HASH, "left")
        last = f"DATE'{dates.last_before}'" if dates.last_before else "CAST(NULL AS DATE)"
        current = f"{_OLD_HEAD}.status = '{CURRENT}'"
        beside = {
            HAD_HEAD: f"{_OLD_HEAD} IS NOT NULL",
            OLD_WATERMARK: f"CASE WHEN {current} THEN {last} ELSE {_OLD_HEAD}.watermark_on END",
        }
    return heads.withColumns({name: F.expr(sql) for name, sql in beside.items()})
