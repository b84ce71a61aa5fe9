"""The head of each key of a valuation: its epoch, its status, and the dates that wait."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.timeline.layout import (
    CURRENT,
    FAILED,
    RANGE_TYPE,
    REPROCESSING,
    make_head,
    of_head,
    read_part,
)
from strandline.compute.timeline.superseding import HAD_HEAD, HEAD_DIFFERS, OLD_EPOCH, OLD_WATERMARK
from strandline.lake.work import Work
from strandline.model.columns import HEAD, KEY, Role, quote
from strandline.model.timeline import DATE, EPOCH, Valuation

from .dates import Dates
from .grid import Grid, date_literal
from .reach import END, START
from .resolving import KEY_HASH, MISSING
from .scope import WAITS, Reached

_COMPARED = ("watermark_on", "status", "reason", "waits", "pending")
_WAITS, _WAITS_FOR, _FOLD, _WHY, _FIRST, _PENDING = (
    "__waits_on",
    "__waits_for",
    "__fold",
    "__why",
    "__first",
    "__pending",
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
    history = read_part(work.read_all(valuation.timeline.output), Role.HEAD)
    status, reason = of_head("status").alias(_FOLD), of_head("reason").alias(_WHY)
    known = history.select(F.col(KEY).alias(KEY_HASH), *names, status, reason)
    touched = reached.ranges.select(KEY_HASH).distinct()
    valued = known.where(F.col(_FOLD) != FAILED).join(touched, KEY_HASH, "left_semi")
    heads = valued.unionByName(known.where(F.col(_FOLD) == FAILED))
    heads = _with_waits(heads, own, reached, missing)
    heads = _with_pending(heads, reached)
    heads = _with_published(heads, own, dates)
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


def _with_waits(
    heads: DataFrame, own: DataFrame | None, reached: Reached, missing: DataFrame | None
) -> DataFrame:
    """The dates that wait for a reference: those that did and are not in a range, and those that do now."""
    waiting: list[DataFrame] = []
    if own is not None:
        earlier = read_part(own, Role.HEAD).where("size(_head.waits) > 0")
        earlier = earlier.select(
            F.col(KEY).alias(KEY_HASH),
            F.explode(of_head("waits")).alias(DATE),
            F.regexp_extract(of_head("reason"), "`(.*)`", 1).alias(MISSING),
        )
        ranges = reached.ranges.where(f"NOT {WAITS}").select(F.col(KEY_HASH).alias("__h"), START, END)
        begun = F.col(START).isNull() | (F.col(DATE) >= F.col(START))
        inside = begun & (F.col(END).isNull() | (F.col(DATE) < F.col(END)))
        waiting.append(earlier.join(ranges, (F.col(KEY_HASH) == F.col("__h")) & inside, "left_anti"))
    if missing is not None:
        waiting.append(missing)
    if not waiting:
        nothing = F.array().cast("array<date>")
        return heads.withColumns({_WAITS: nothing, _WAITS_FOR: F.lit(None).cast("string")})
    both = waiting[0] if len(waiting) == 1 else waiting[0].unionByName(waiting[1])
    by_key = both.groupBy(KEY_HASH).agg(
        F.sort_array(F.collect_set(DATE)).alias(_WAITS), F.min_by(MISSING, DATE).alias(_WAITS_FOR)
    )
    return heads.join(by_key, KEY_HASH, "left")


def _with_pending(heads: DataFrame, reached: Reached) -> DataFrame:
    """The ranges of keys that wait for a later batch. NULL for the others."""
    if not reached.waiting:
        return heads.withColumn(_PENDING, F.lit(None).cast(f"array<{RANGE_TYPE.simpleString()}>"))
    one = F.struct(F.col(START).alias("start"), F.col(END).alias("end"))
    marked = (
        reached.ranges.where(WAITS).groupBy(KEY_HASH).agg(F.sort_array(F.collect_set(one)).alias(_PENDING))
    )
    return heads.join(marked, KEY_HASH, "left")


def _with_published(heads: DataFrame, own: DataFrame | None, dates: Dates) -> DataFrame:
    """Heads beside the published ones. A CURRENT key is complete up to the last date that was due."""
    if own is None:
        return heads.withColumns(
            {
                HAD_HEAD: F.lit(False),
                OLD_EPOCH: F.lit(0).cast("bigint"),
                OLD_WATERMARK: F.lit(None).cast("date"),
                _OLD_HEAD: make_head({}),
            }
        )
    published = read_part(own, Role.HEAD).select(
        F.col(KEY).alias(KEY_HASH), F.col(EPOCH).alias(OLD_EPOCH), F.col(HEAD).alias(_OLD_HEAD)
    )
    joined = heads.join(published, KEY_HASH, "left")
    current = F.col(f"{_OLD_HEAD}.status") == CURRENT
    watermark = F.when(current, date_literal(dates.last_before)).otherwise(F.col(f"{_OLD_HEAD}.watermark_on"))
    return joined.withColumns({HAD_HEAD: F.col(_OLD_HEAD).isNotNull(), OLD_WATERMARK: watermark})
