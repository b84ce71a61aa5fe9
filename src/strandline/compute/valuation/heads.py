"""The head of each key of a valuation: its epoch, its status, and the dates that wait for a reference."""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.timeline.layout import CURRENT, FAILED, make_head, of_head, read_part
from strandline.compute.timeline.superseding import HAD_HEAD, HEAD_DIFFERS, OLD_EPOCH, OLD_WATERMARK
from strandline.lake.work import Work
from strandline.model.columns import HEAD, KEY, Role, quote
from strandline.model.timeline import DATE, EPOCH, Valuation

from .grid import Grid
from .resolving import KEY_HASH, MISSING

_COMPARED = ("watermark_on", "status", "reason", "waits")
_WAITS, _WAITS_FOR, _FOLD_FAILS = "__waits", "__waits_for", "__fold_fails"


def judge_heads(
    work: Work,
    valuation: Valuation,
    own: DataFrame | None,
    cells: DataFrame,
    missing: DataFrame | None,
    business: Sequence[date],
    before: date | None,
) -> DataFrame:
    """One head per key that was valued or whose fold fails, as it shall be, beside what it was.

    `missing` are the cells without a required reference. `before` is the last day that was due before.
    """
    key = valuation.timeline.key
    names = [quote(c) for c in key]
    history = read_part(work.read_all(valuation.timeline.output), Role.HEAD)
    status, reason = of_head("status").alias(_FOLD_FAILS), of_head("reason").alias("__why")
    known = history.select(F.col(KEY).alias(KEY_HASH), *names, status, reason)
    touched = cells.select(KEY_HASH).distinct()
    failing = known.where(F.col(_FOLD_FAILS) == FAILED)
    heads = known.join(touched, KEY_HASH, "left_semi").unionByName(failing).distinct()
    heads = _with_waits(heads, own, cells, missing)
    heads = _with_published(heads, own, before)
    grid = Grid.of(business)
    held = F.col(_FOLD_FAILS) == FAILED
    waits = F.col(_WAITS)
    first = F.array_min(waits)
    place = grid.place_of("__first")
    heads = heads.withColumn("__first", first)
    previous = F.when(F.expr(f"({place}) > 0"), grid.date_at(f"({place}) - 1"))
    others = F.expr(
        f"CASE WHEN size({_WAITS}) > 1 THEN concat(' and ', size({_WAITS}) - 1, ' other dates') ELSE '' END"
    )
    why = F.concat(F.lit("no row of `"), F.col(_WAITS_FOR), F.lit("` on "), first.cast("string"), others)
    waiting = F.size(waits) > 0
    head = make_head(
        {
            "watermark_on": F.when(held, F.col(OLD_WATERMARK)).when(waiting, previous),
            "status": F.when(held | waiting, FAILED).otherwise(CURRENT),
            "reason": F.when(held, F.col("__why")).when(waiting, why),
            "waits": F.when(~held & waiting, waits),
        }
    )
    heads = heads.withColumn(HEAD, head)
    differs = ~F.col(HAD_HEAD)
    for name in _COMPARED:
        differs = differs | ~F.col(f"{HEAD}.{name}").eqNullSafe(F.col(f"__old_head.{name}"))
    return heads.select(*names, HEAD, HAD_HEAD, OLD_EPOCH, OLD_WATERMARK, differs.alias(HEAD_DIFFERS))


def _with_waits(
    heads: DataFrame, own: DataFrame | None, cells: DataFrame, missing: DataFrame | None
) -> DataFrame:
    """The dates that wait: those that waited and were not valued now, and those that lack a reference now."""
    waiting: list[DataFrame] = []
    if own is not None:
        published = read_part(own, Role.HEAD)
        earlier = published.where("size(_head.waits) > 0").select(
            F.col(KEY).alias(KEY_HASH),
            F.explode(of_head("waits")).alias(DATE),
            F.regexp_extract(of_head("reason"), "`(.*)`", 1).alias(MISSING),
        )
        waiting.append(earlier.join(cells.select(KEY_HASH, DATE), [KEY_HASH, DATE], "left_anti"))
    if missing is not None:
        waiting.append(missing.select(KEY_HASH, DATE, MISSING))
    if not waiting:
        nothing = F.array().cast("array<date>")
        return heads.withColumns({_WAITS: nothing, _WAITS_FOR: F.lit(None).cast("string")})
    both = waiting[0] if len(waiting) == 1 else waiting[0].unionByName(waiting[1])
    by_key = both.groupBy(KEY_HASH).agg(
        F.sort_array(F.collect_set(DATE)).alias(_WAITS), F.min_by(MISSING, DATE).alias(_WAITS_FOR)
    )
    return heads.join(by_key, KEY_HASH, "left")


def _with_published(heads: DataFrame, own: DataFrame | None, before: date | None) -> DataFrame:
    """Heads beside the published ones. A head without a watermark is complete up to the last day due."""
    if own is None:
        return heads.withColumns(
            {
                HAD_HEAD: F.lit(False),
                OLD_EPOCH: F.lit(0).cast("bigint"),
                OLD_WATERMARK: F.lit(None).cast("date"),
                "__old_head": make_head({}),
            }
        )
    published = read_part(own, Role.HEAD).select(
        F.col(KEY).alias(KEY_HASH), F.col(EPOCH).alias(OLD_EPOCH), F.col(HEAD).alias("__old_head")
    )
    joined = heads.join(published, KEY_HASH, "left")
    failed = F.col("__old_head.status") == FAILED
    complete = F.when(~failed, F.lit(before).cast("date"))
    watermark = F.coalesce(F.col("__old_head.watermark_on"), complete)
    return joined.withColumns({HAD_HEAD: F.col("__old_head").isNotNull(), OLD_WATERMARK: watermark})
