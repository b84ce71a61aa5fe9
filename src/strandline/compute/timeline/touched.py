"""The keys that a task of a fold must compute: those of changed facts, invalidations and requests."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.lake.near import Among
from strandline.lake.reads import SIGN
from strandline.lake.work import Work
from strandline.model.columns import HEAD, KEY, quote
from strandline.model.conditions import EVERY_ROW
from strandline.model.scope import find_filter
from strandline.model.timeline import DATE, EPOCH, Timeline

from .layout import FAILED, hash_head, key_types, name_values
from .streaming import KEY_HASH, STATE

FIRST_ON, LEAVES, CONTINUES, PUBLISHED = "__first_on", "__leaves", "__continues", "__published"


def find_touched(work: Work, timeline: Timeline, own: DataFrame) -> DataFrame:
    """The touched keys with their hashes, published heads, and the states from which those continue that do.

    A key continues if facts were only added to it, all of them later than its last date, and its last fold
    did not fail. A key without a head continues from nothing.
    """
    touched = reduce(DataFrame.unionByName, _find_origins(work, timeline))
    names = [quote(c) for c in timeline.key]
    touched = touched.groupBy(*names).agg(F.min(FIRST_ON).alias(FIRST_ON), F.max(LEAVES).alias(LEAVES))
    touched = touched.withColumn(KEY_HASH, hash_head(timeline.key, key_types(own, timeline.key)))
    heads = work.read_states(timeline.output, _name_changed(work, timeline, own)).select(
        F.struct("*").alias(PUBLISHED),
        F.col(KEY).alias("__head_hash"),
        *(F.col(quote(c)).alias(f"__head_{c}") for c in timeline.key),
    )
    same = [F.col(KEY_HASH) == F.col("__head_hash")]
    same += [F.col(quote(c)).eqNullSafe(F.col(quote(f"__head_{c}"))) for c in timeline.key]
    head = f"{PUBLISHED}.{HEAD}"
    continues = (
        f"NOT {LEAVES} AND ({PUBLISHED} IS NULL OR ({head}.status != '{FAILED}'"
        f" AND {head}.state IS NOT NULL AND {FIRST_ON} > {head}.last_on))"
    )
    joined = heads.join(F.broadcast(touched), same, "right")
    return joined.withColumn(CONTINUES, F.expr(continues)).select(
        *names,
        KEY_HASH,
        CONTINUES,
        F.expr(f"CASE WHEN {CONTINUES} THEN {head}.state END").alias(STATE),
        PUBLISHED,
    )


def _name_changed(work: Work, timeline: Timeline, own: DataFrame) -> tuple[Among, ...]:
    """Values of the key that all touched keys have, if they are few and known before they are computed."""
    staged = work.find_staged_changes(timeline.facts) if work.has_changes(timeline.facts) else None
    asked = work.invalidations(timeline.facts) or find_filter(work.task.scope) is not None
    return () if asked or staged is None else name_values(staged, own.schema, timeline.key)


def _find_origins(work: Work, timeline: Timeline) -> list[DataFrame]:
    names = [quote(c) for c in timeline.key]
    date = quote(timeline.date)
    again = {FIRST_ON: F.lit(None).cast("date"), LEAVES: F.lit(True)}
    origins: list[DataFrame] = []
    if work.has_changes(timeline.facts):
        changes = work.read_changes(timeline.facts).where(f"{date} IS NOT NULL")
        origins.append(changes.select(*names, F.col(date).alias(FIRST_ON), (F.col(SIGN) < 0).alias(LEAVES)))
    if invalidations := work.invalidations(timeline.facts):
        live = work.read_live(timeline.facts)
        filters = [typed_filter(find_filter(i.scope) or EVERY_ROW, live) for i in invalidations]
        origins.append(live.where(any_of(filters)).select(*names).withColumns(again))
    if (request := find_filter(work.task.scope)) is not None:
        facts = work.read_live(timeline.facts).select(*names, F.col(date).alias(DATE))
        published = work.read_rows(timeline.output).select(*names, DATE, EPOCH)
        for rows in (facts, published.drop(EPOCH)):
            wanted = any_of([typed_filter(request, rows)])
            origins.append(rows.where(wanted).select(*names).withColumns(again))
    return origins
