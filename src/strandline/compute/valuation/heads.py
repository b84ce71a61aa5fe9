"""The head of each key of a valuation: its epoch, its status, and the dates that wait."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.timeline.layout import (
    CURRENT,
    FAILED,
    REPROCESSING,
    make_head,
    of_head,
)
from strandline.compute.timeline.superseding import HAD_HEAD, HEAD_DIFFERS, OLD_EPOCH, OLD_WATERMARK
from strandline.lake.work import Work
from strandline.model.columns import HEAD, KEY, quote
from strandline.model.timeline import DATE, EPOCH, Valuation

from .dates import Dates
from .grid import Grid, date_literal
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
    status, reason = of_head("status").alias(_FOLD), of_head("reason").alias(_WHY)
    history = work.read_heads(valuation.timeline.output)
    known = history.select(F.col(KEY).alias(KEY_HASH), *names, status, reason)
    heads = known.join(_collect_ranges(reached), KEY_HASH, "left")
    heads = heads.where(f"{_COMPUTED} IS NOT NULL OR {_FOLD} = '{FAILED}'")
    heads = _with_published(heads, None if own is None else work.read_heads(valuation.output), dates)
    heads = _with_waits(heads, missing)
    heads = heads.withColumn(_FIRST, F.array_min(F.col(_WAITS)))
    grid = Grid.of(dates.business)
    place = grid.place_of(_FIRST)
    previous = F.when(F.expr(f"({place}) > 0"), grid.date_at(f"({place}) - 1"))
    others = (
        f"CASE size({_WAITS}) WHEN 1 THEN '' WHEN 2 THEN ' and 1 other date'"
        f" ELSE concat(' and ', size({_WAITS}) - 1, ' other dates') END"
    )
    why = F.concat(
        F.lit("no row of `"), F.col(_WAITS_FOR), F.lit("` on "), F.col(_FIRST).cast("string"), F.expr(others)
    )
    held, marked = F.col(_FOLD) == FAILED, F.col(_PENDING).isNotNull()
    waits, old = F.size(F.col(_WAITS)) > 0, F.col(_OLD_HEAD)
    head = make_head(
        {
            "watermark_on": F.when(held | marked, F.col(OLD_WATERMARK)).when(waits, previous),
            "status": F.when(held, FAILED).when(marked, REPROCESSING).when(waits, FAILED).otherwise(CURRENT),
            "reason": F.when(held, F.col(_WHY)).when(marked, old.getField("reason")).when(waits, why),
            "waits": F.when(held, F.lit(None))
            .when(marked, F.col(f"{_OLD_HEAD}.waits"))
            .when(waits, F.col(_WAITS)),
            "pending": F.when(~held & marked, F.col(_PENDING)),
        }
    )
    heads = heads.withColumn(HEAD, head)
    differs = ~F.col(HAD_HEAD)
    for name in _COMPARED:
        differs = differs | ~F.col(f"{HEAD}.{name}").eqNullSafe(F.col(f"{_OLD_HEAD}.{name}"))
    return heads.select(*names, HEAD, HAD_HEAD, OLD_EPOCH, OLD_WATERMARK, differs.alias(HEAD_DIFFERS))


def _collect_ranges(reached: Reached) -> DataFrame:
    """The ranges of each key that are computed now, and those that wait for a later batch (NULL if none)."""
    one = F.struct(F.col(START).alias("start"), F.col(END).alias("end"))
    later = F.sort_array(F.collect_set(F.when(F.col(WAITS), one)))
    return reached.ranges.groupBy(KEY_HASH).agg(
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
        return heads.withColumns(
            {
                HAD_HEAD: F.lit(False),
                OLD_EPOCH: F.lit(0).cast("bigint"),
                OLD_WATERMARK: F.lit(None).cast("date"),
                _OLD_HEAD: make_head({}),
            }
        )
    published = published.select(
        F.col(KEY).alias(KEY_HASH), F.col(EPOCH).alias(OLD_EPOCH), F.col(HEAD).alias(_OLD_HEAD)
    )
    joined = heads.join(published, KEY_HASH, "left")
    current = F.col(f"{_OLD_HEAD}.status") == CURRENT
    watermark = F.when(current, date_literal(dates.last_before)).otherwise(F.col(f"{_OLD_HEAD}.watermark_on"))
    return joined.withColumns({HAD_HEAD: F.col(_OLD_HEAD).isNotNull(), OLD_WATERMARK: watermark})
