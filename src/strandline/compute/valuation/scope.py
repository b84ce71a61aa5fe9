"""What a task of a valuation computes: ranges of dates of keys, and who waits for a later batch (ADR 14)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.timeline.layout import of_head, read_part
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import KEY, Role, quote
from strandline.model.scope import find_filter
from strandline.model.timeline import DATE, Valuation

from .dates import Dates
from .grid import PLACE, Grid
from .reach import END, START, reach_all, reach_of_history, reach_of_reference
from .resolving import KEY_HASH

WHY, WAITS = "__why", "__waits"
BY_FACTS, BY_OTHERS, DUE = "facts", "others", "due"
"""Why a range is computed: facts changed, anything else changed, or a date has become due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The ranges of a task. `waits` is true for keys that are published by a later batch."""

    ranges: DataFrame
    """Hash, key, start, end, waits."""
    cells: DataFrame
    """Hash, key and date: the business dates in the ranges of keys that do not wait."""
    grid: Grid
    """The dates of those cells."""
    count: int
    """The number of those cells."""
    waiting: int
    """The number of cells of keys that wait."""

    def of_published(self, rows: DataFrame, key: Sequence[str]) -> DataFrame:
        """The rows (with the hash of their key) that lie in ranges of keys that do not wait."""
        theirs = self.ranges.where(f"NOT {WAITS}").select(
            F.col(KEY_HASH).alias("__their_hash"),
            *(F.col(quote(c)).alias(f"__their_{c}") for c in key),
            F.col(START).alias("__their_start"),
            F.col(END).alias("__their_end"),
        )
        same = F.col(KEY_HASH) == F.col("__their_hash")
        for column in key:
            same = same & F.col(quote(column)).eqNullSafe(F.col(quote(f"__their_{column}")))
        begun = F.col("__their_start").isNull() | (F.col(DATE) >= F.col("__their_start"))
        not_ended = F.col("__their_end").isNull() | (F.col(DATE) < F.col("__their_end"))
        return rows.join(theirs, same & begun & not_ended, "left_semi")

    def condition(self) -> str:
        """SQL on the date that holds for every row in the ranges, by which files are skipped.

        It is false where everybody waits.
        """
        pairs = self.ranges.where(f"NOT {WAITS}").select(START, END).distinct().limit(_MOST_RANGES + 1)
        bounds = [(row[0], row[1]) for row in pairs.collect()]
        if len(bounds) > _MOST_RANGES:
            starts = self.ranges.agg(F.min(START), F.max(END), F.count_if(F.col(START).isNull()))
            low, high, unbounded = starts.collect()[0]
            ends = self.ranges.where(F.col(END).isNull()).limit(1).count()
            bounds = [(None if unbounded else low, None if ends else high)]
        alternatives = (
            " AND ".join(
                [
                    *([f"{DATE} >= DATE'{low}'"] if low else []),
                    *([f"{DATE} < DATE'{high}'"] if high else []),
                ]
            )
            or "true"
            for low, high in bounds
        )
        return " OR ".join(alternatives) or "false"


_MOST_RANGES = 50


def find_ranges(
    work: Work, valuation: Valuation, own: DataFrame, keys: DataFrame, dates: Dates
) -> list[DataFrame]:
    """Everything that changes, the clock, mended folds, requests and earlier marks reach."""
    history = valuation.timeline.output
    reached = [_tag(_mended_keys(own, keys), BY_FACTS)]
    if _moved(work, history):
        reached += [_tag(ranges, BY_FACTS) for ranges in reach_of_history(work, valuation)]
    everywhere = Grid.of(dates.business)
    for reference in valuation.references:
        if _moved(work, reference.dataset):
            ranges = reach_of_reference(work, valuation, reference, keys, everywhere)
            reached.append(_tag(ranges, BY_OTHERS))
    for day in dates.changed:
        reached.append(_tag(reach_all(keys, day, day + timedelta(days=1)), BY_OTHERS))
    if dates.new:
        reached.append(_tag(reach_all(keys, min(dates.new)), DUE))
    if (request := find_filter(work.task.scope)) is not None:
        cells = everywhere.spread(reach_all(keys), START, END).withColumn(DATE, everywhere.date_at(PLACE))
        wanted = cells.where(any_of([typed_filter(request, cells)]))
        ends = {START: F.col(DATE), END: F.date_add(F.col(DATE), 1)}
        reached.append(_tag(wanted.withColumns(ends).drop(PLACE, DATE), BY_OTHERS))
    reached.append(_tag(_pending(own, keys), BY_OTHERS))
    return reached


def _tag(ranges: DataFrame, why: str) -> DataFrame:
    return ranges.withColumn(WHY, F.lit(why))


def _moved(work: Work, dataset: str) -> bool:
    return work.has_changes(dataset) or bool(work.invalidations(dataset))


def _mended_keys(own: DataFrame, keys: DataFrame) -> DataFrame:
    """All dates of keys that were held because their fold failed, and that fold again."""
    held = read_part(own, Role.HEAD).where("_head.status = 'FAILED' AND coalesce(size(_head.waits), 0) <= 0")
    return reach_all(keys.join(held.select(F.col(KEY).alias(KEY_HASH)), KEY_HASH, "left_semi"))


def _pending(own: DataFrame, keys: DataFrame) -> DataFrame:
    """The dates that earlier runs left to later batches."""
    marked = read_part(own, Role.HEAD).where("size(_head.pending) > 0")
    ranges = marked.select(F.col(KEY).alias(KEY_HASH), F.explode(of_head("pending")).alias("__range"))
    ranges = ranges.select(KEY_HASH, F.col("__range.start").alias(START), F.col("__range.end").alias(END))
    return keys.join(ranges, KEY_HASH)


def choose_scope(
    work: Work, valuation: Valuation, keys: DataFrame, ranges: Sequence[DataFrame], dates: Dates
) -> Reached:
    """Stage the ranges and the cells in them, and decide who waits."""
    key = [quote(c) for c in valuation.timeline.key]
    columns = [KEY_HASH, *key, START, END, WHY]
    united = reduce(DataFrame.unionByName, (frame.select(*columns) for frame in ranges))
    united = united.join(keys.select(KEY_HASH), KEY_HASH, "left_semi")
    grid = Grid.of(dates.business)
    cells = grid.spread(united, START, END).groupBy(KEY_HASH, *key, PLACE)
    weighed = cells.agg(F.max(_is(BY_OTHERS)).alias("__others"))
    staged_ranges = stage(united, f"{work.staging}/ranges", {"ranges": F.count(F.lit(1))})
    staged = stage(
        weighed.withColumn(DATE, grid.date_at(PLACE)).drop(PLACE),
        f"{work.staging}/cells",
        {"cells": F.count(F.lit(1))},
    )
    waiting = _find_waiting(work, valuation, staged_ranges, staged)
    return _split(work, valuation, staged_ranges, staged, waiting)


def _is(why: str) -> Column:
    return F.col(WHY) == why


def _find_waiting(work: Work, valuation: Valuation, ranges: Staged, cells: Staged) -> DataFrame | None:
    """The groups that wait, as columns `together`, or the key. None if nobody has to."""
    most = work.project.settings.batch_rows
    if cells.counts["cells"] <= most:
        return None
    group = [quote(c) for c in valuation.timeline.together or valuation.timeline.key]
    rows = cells.read(work.session).withColumns({"__rows": F.lit(1), "__facts": F.lit(False)})
    # Facts touch a group also where they reach no date that is due.
    touched = ranges.read(work.session).where(_is(BY_FACTS))
    touched = touched.withColumns({"__rows": F.lit(0), "__facts": F.lit(True), "__others": F.lit(False)})
    counted = [*group, "__rows", "__facts", "__others"]
    by_group = (
        rows.select(*counted)
        .unionByName(touched.select(*counted))
        .groupBy(*group)
        .agg(
            F.sum("__rows").alias("__rows"),
            F.max("__facts").alias("__facts"),
            F.max("__others").alias("__others"),
        )
    )
    others = by_group.where("NOT __facts AND __others")
    total = others.agg(F.sum("__rows")).collect()[0][0] or 0
    if total <= most:
        return None
    changed = ranges.read(work.session).where(_is(BY_FACTS) | _is(DUE)).limit(1).count() or any(
        _moved(work, i.dataset) for i in work.node.inputs
    )
    if changed:
        return others.select(*group)
    # Nothing new: this is a later batch. Groups go in their order, as many as fit, and at least one.
    before = "OVER (ORDER BY {} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)".format(", ".join(group))
    running = others.withColumn("__before", F.expr(f"coalesce(sum(__rows) {before}, 0)"))
    return running.where(F.expr(f"__before > 0 AND __before + __rows > {most}")).select(*group)


def _split(
    work: Work, valuation: Valuation, ranges: Staged, cells: Staged, waiting: DataFrame | None
) -> Reached:
    all_ranges, all_cells = ranges.read(work.session), cells.read(work.session).drop("__others")
    if waiting is None:
        marked = all_ranges.drop(WHY).withColumn(WAITS, F.lit(False))
        publish, left = all_cells, 0
    else:
        group = valuation.timeline.together or valuation.timeline.key
        names = [*(quote(c) for c in group)]
        theirs = waiting.select(
            *(F.col(c).alias(f"__group{n}") for n, c in enumerate(names)), F.lit(True).alias(WAITS)
        )
        same = reduce(
            lambda a, b: a & b, [F.col(c).eqNullSafe(F.col(f"__group{n}")) for n, c in enumerate(names)]
        )
        gone = [f"__group{n}" for n in range(len(names))]
        marked = all_ranges.drop(WHY).join(F.broadcast(theirs), same, "left").drop(*gone)
        marked = marked.withColumn(WAITS, F.coalesce(F.col(WAITS), F.lit(False)))
        publish = all_cells.join(F.broadcast(theirs), same, "left_anti")
        left = cells.counts["cells"] - publish.count()
    found = publish.select(DATE).distinct().collect()
    return Reached(
        ranges=marked,
        cells=publish,
        grid=Grid.of(row[0] for row in found),
        count=cells.counts["cells"] - left,
        waiting=left,
    )
