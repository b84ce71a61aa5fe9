"""What a task of a valuation computes: ranges of dates of keys, and who waits for a later batch (ADR 14)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.timeline.layout import name_values, of_head
from strandline.lake.near import Bounds, Near
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import KEY, quote
from strandline.model.scope import find_filter
from strandline.model.timeline import DATE, Reference, Valuation

from .dates import Dates
from .grid import PLACE, Grid
from .reach import END, START, reach_all, reach_of_history, reach_of_reference, reach_ranges
from .resolving import KEY_HASH, LAST_ON, SETTLED, Kinds

WHY, WAITS = "__why", "__waits"
BY_FACTS, BY_OTHERS, DUE = "facts", "others", "due"
"""Why a range is computed: facts changed, anything else changed, or a date has become due."""
_REASONS = {BY_FACTS: "__by_facts", BY_OTHERS: "__by_others", DUE: "__due"}
_CELLS = "__cells"
_IS_FIRST = "__is_first"
"""True for the first range of a key."""
_FIRST, NO_END = f"DATE'{date.min}'", f"DATE'{date.max}'"
"""Dates in place of no bound, which can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The ranges of a task. `waits` is true for keys that are published by a later batch."""

    ranges: DataFrame
    """Hash, key, start, end, waits. Ranges of one key do not overlap."""
    bounds: tuple[Bounds, ...]
    """Few ranges, ascending, that contain all ranges of keys that do not wait."""
    grid: Grid
    """The business dates in those."""
    kinds: Kinds
    count: int
    """The number of cells, which are business dates in the ranges of keys that do not wait."""
    keys: int
    """The number of keys that do not wait."""
    waiting: int
    """The number of cells of keys that wait."""
    waiting_keys: int

    def locate(self, grid: Grid) -> DataFrame:
        """The ranges of keys that do not wait, located on a grid."""
        ranges = self.ranges.where(f"NOT {WAITS}").drop(WAITS)
        return grid.locate(ranges, START, END).drop(START, END)

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

    @property
    def near(self) -> Near:
        """Where published rows in the ranges lie. Nowhere if everybody waits."""
        return Near(dates=self.bounds, among=self.kinds.among)


MOST_RANGES = 50
MOST_PAIRS = 2000


def find_scope(work: Work, valuation: Valuation, keys: DataFrame, dates: Dates) -> Reached:
    """What a task computes of a table that is published.

    On dates that have just become due all keys are computed. What a reference changes there says only why,
    and that only matters if somebody may have to wait.
    """
    before = min(dates.new, default=None)
    found = _find_ranges(work, valuation, keys, dates, before)
    only_due = before is not None and len(found) == 1
    ranges = _stage_ranges(work, valuation, found, dates, once=only_due)
    if before is not None and ranges.counts["cells"] > work.project.settings.batch_rows:
        ranges = _stage_ranges(work, valuation, _find_ranges(work, valuation, keys, dates, None), dates)
        only_due = False
    waiting, grid = _find_waiting(work, valuation, ranges), Grid.of(dates.business)
    return _split(work, valuation, ranges, waiting, grid, once=only_due)


def find_everything(work: Work, valuation: Valuation, keys: DataFrame, dates: Dates) -> Reached:
    """All dates of all keys, published in one commit: until then the table is of no or of an older shape."""
    ranges = _stage_ranges(work, valuation, [_tag(reach_all(keys), BY_FACTS)], dates, once=True)
    return _split(work, valuation, ranges, None, Grid.of(dates.business), once=True)


def _find_ranges(
    work: Work, valuation: Valuation, keys: DataFrame, dates: Dates, before: date | None
) -> list[DataFrame]:
    """Everything that changes, the clock, mended folds, requests and earlier marks reach.

    Changes of references count if they begin before a date. A fold is mended by a commit to the history.
    Where keys are marked, the last commit says so.
    """
    reached: list[DataFrame] = []
    if _moved(work, valuation.timeline.output):
        heads = work.read_heads(valuation.output)
        ranges = reach_of_history(work, valuation).select(KEY_HASH, START, END)
        reached.append(_tag(keys.join(ranges, KEY_HASH), BY_FACTS))
        reached.append(_tag(_mended_keys(heads, keys), BY_FACTS))
    everywhere = Grid.of(dates.business)
    for reference in valuation.references:
        if _moved(work, reference.dataset) and not _changed_from(work, reference, before):
            ranges = reach_of_reference(work, valuation, reference, keys, everywhere, before)
            reached.append(_tag(ranges, BY_OTHERS))
    if dates.changed:
        reached.append(_tag(reach_ranges(keys, dates.changed), BY_OTHERS))
    if dates.new:
        reached.append(_tag(reach_all(keys, min(dates.new)), DUE))
    if (request := find_filter(work.task.scope)) is not None:
        cells = everywhere.spread(reach_all(keys), START, END).withColumn(DATE, everywhere.date_at(PLACE))
        wanted = cells.where(any_of([typed_filter(request, cells)]))
        ends = {START: F.col(DATE), END: F.date_add(F.col(DATE), 1)}
        reached.append(_tag(wanted.withColumns(ends).drop(PLACE, DATE), BY_OTHERS))
    if work.waiting:
        reached.append(_tag(_pending(work.read_heads(valuation.output), keys), BY_OTHERS))
    return reached or [_tag(reach_all(keys.limit(0)), BY_OTHERS)]


def _tag(ranges: DataFrame, why: str) -> DataFrame:
    return ranges.withColumn(WHY, F.lit(why))


def _moved(work: Work, dataset: str) -> bool:
    return work.has_changes(dataset) or bool(work.invalidations(dataset))


def _changed_from(work: Work, reference: Reference, start: date | None) -> bool:
    """Whether all changes of a dated reference are known to lie on or after a date."""
    if start is None or not reference.date or work.invalidations(reference.dataset):
        return False
    staged = work.find_staged_changes(reference.dataset)
    if staged is None or not isinstance(staged.schema[reference.date].dataType, DateType):
        return False
    first = pa.scalar(start, pa.date32())
    earlier = (pc.less(rows.column(reference.date), first) for rows in staged.scan([reference.date]))
    return not any(pc.any(are_earlier).as_py() for are_earlier in earlier)


def _mended_keys(heads: DataFrame, keys: DataFrame) -> DataFrame:
    """All dates of keys that were held because their fold failed, and that fold again."""
    held = heads.where("_head.status = 'FAILED' AND coalesce(size(_head.waits), 0) <= 0")
    return reach_all(keys.join(held.select(F.col(KEY).alias(KEY_HASH)), KEY_HASH, "left_semi"))


def _pending(heads: DataFrame, keys: DataFrame) -> DataFrame:
    """The dates that earlier runs left to later batches."""
    marked = heads.where("size(_head.pending) > 0")
    ranges = marked.select(F.col(KEY).alias(KEY_HASH), F.explode(of_head("pending")).alias("__range"))
    ranges = ranges.select(KEY_HASH, F.col("__range.start").alias(START), F.col("__range.end").alias(END))
    return keys.join(ranges, KEY_HASH)


def _stage_ranges(
    work: Work, valuation: Valuation, ranges: Sequence[DataFrame], dates: Dates, *, once: bool = False
) -> Staged:
    """Stage the ranges, and count the cells in them. `once`: each key has a single range."""
    key = [quote(c) for c in valuation.timeline.key]
    columns = [KEY_HASH, *key, LAST_ON, START, END, WHY]
    cells = Grid.of(dates.business).count(START, END)
    united = reduce(DataFrame.unionByName, (frame.select(*columns) for frame in ranges))
    counted = united.withColumn(_CELLS, cells)
    counted = _label(counted, key) if once else _merge(counted, key).withColumn(_CELLS, cells)
    counts = {
        "cells": F.sum(_CELLS),
        "keys": F.count_if(_IS_FIRST),
        "settled": F.count_if(SETTLED),
        "moving": F.count_if(~F.col(SETTLED)),
    }
    return stage(counted, f"{work.staging}/ranges", counts)


def _label(ranges: DataFrame, key: Sequence[str]) -> DataFrame:
    """What `_merge` gives where each key has a single range."""
    settled = f"coalesce({LAST_ON} <= coalesce({START}, {_FIRST}), false)"
    reasons = [_is_reason(why).alias(name) for why, name in _REASONS.items()]
    return ranges.select(
        KEY_HASH,
        *key,
        START,
        END,
        F.expr(settled).alias(SETTLED),
        *reasons,
        F.lit(True).alias(_IS_FIRST),
        _CELLS,
    )


def _is_reason(why: str) -> Column:
    """Facts touch a key also where they reach no date that is due. Other changes then do not."""
    return (F.col(WHY) == why) & (F.lit(why == BY_FACTS) | (F.col(_CELLS) > 0))


def _merge(ranges: DataFrame, key: Sequence[str]) -> DataFrame:
    """Ranges of one key that overlap or follow each other become one, with all their reasons."""
    of_key = f"OVER (PARTITION BY {KEY_HASH}, {', '.join(key)} ORDER BY __first, __last"
    before = f"{of_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    ranges = ranges.withColumns(
        {
            "__first": F.expr(f"coalesce({START}, {_FIRST})"),
            "__last": F.expr(f"coalesce({END}, {NO_END})"),
        }
    )
    ranges = ranges.withColumn("__gap", F.expr(f"coalesce(__first > max(__last) {before}, false)"))
    settled = f"coalesce({LAST_ON} <= min(__first) {of_key.partition(' ORDER')[0]}), false)"
    ranges = ranges.withColumns({"__nth": F.expr(f"count_if(__gap) {of_key})"), SETTLED: F.expr(settled)})
    merged = ranges.groupBy(KEY_HASH, *key, "__nth").agg(
        F.min("__first").alias("__first"),
        F.max("__last").alias("__last"),
        F.max(SETTLED).alias(SETTLED),
        *(F.max(_is_reason(why)).alias(name) for why, name in _REASONS.items()),
    )
    return merged.select(
        KEY_HASH,
        *key,
        F.expr(f"nullif(__first, {_FIRST})").alias(START),
        F.expr(f"nullif(__last, {NO_END})").alias(END),
        SETTLED,
        *_REASONS.values(),
        (F.col("__nth") == 0).alias(_IS_FIRST),
    )


def _find_waiting(work: Work, valuation: Valuation, ranges: Staged) -> DataFrame | None:
    """The groups that wait, as columns `together`, or the key. None if nobody has to."""
    most = work.project.settings.batch_rows
    if ranges.counts["cells"] <= most:
        return None
    group = [quote(c) for c in valuation.timeline.together or valuation.timeline.key]
    reasons = [F.max(name).alias(name) for name in _REASONS.values()]
    by_group = ranges.read(work.session).groupBy(*group).agg(F.sum(_CELLS).alias("__rows"), *reasons)
    others = by_group.where(f"NOT {_REASONS[BY_FACTS]} AND {_REASONS[BY_OTHERS]}")
    total = others.agg(F.sum("__rows")).collect()[0][0] or 0
    if total <= most:
        return None
    new = by_group.where(f"{_REASONS[BY_FACTS]} OR {_REASONS[DUE]}")
    if any(_moved(work, i.dataset) for i in work.node.inputs) or not new.isEmpty():
        return others.select(*group)
    # Nothing new: this is a later batch. Groups go in their order, as many as fit, and at least one.
    before = "OVER (ORDER BY {} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)".format(", ".join(group))
    running = others.withColumn("__before", F.expr(f"coalesce(sum(__rows) {before}, 0)"))
    return running.where(F.expr(f"__before > 0 AND __before + __rows > {most}")).select(*group)


def _split(
    work: Work, valuation: Valuation, ranges: Staged, waiting: DataFrame | None, grid: Grid, *, once: bool
) -> Reached:
    counted, every = ranges.counts, ranges.read(work.session).drop(*_REASONS.values())
    left = {"cells": 0, "keys": 0}
    if waiting is None:
        marked = every.withColumn(WAITS, F.lit(False))
    else:
        names = [quote(c) for c in valuation.timeline.together or valuation.timeline.key]
        gone = [f"__group{n}" for n in range(len(names))]
        theirs = waiting.select(
            *(F.col(c).alias(name) for c, name in zip(names, gone, strict=True)), F.lit(True).alias(WAITS)
        )
        same = reduce(and_, [F.col(c).eqNullSafe(F.col(g)) for c, g in zip(names, gone, strict=True)])
        marked = every.join(F.broadcast(theirs), same, "left").drop(*gone)
        marked = marked.withColumn(WAITS, F.coalesce(F.col(WAITS), F.lit(False)))
        counts = {
            "cells": F.expr(f"sum(CASE WHEN {WAITS} THEN {_CELLS} END)"),
            "keys": F.count_if(F.col(WAITS) & F.col(_IS_FIRST)),
        }
        ranges = stage(marked, f"{work.staging}/marked", counts)
        marked, left = ranges.read(work.session), dict(ranges.counts)
    bounds = find_bounds(ranges)
    return Reached(
        ranges=marked.drop(_CELLS, _IS_FIRST),
        bounds=bounds,
        grid=Grid.of(day for day in grid.dates if any(_holds(day, one) for one in bounds)),
        count=counted["cells"] - left["cells"],
        keys=counted["keys"] - left["keys"],
        kinds=Kinds(
            settled=counted["settled"] > 0,
            moving=counted["moving"] > 0,
            once=once,
            among=name_values(ranges, every.schema, valuation.timeline.key),
            hashes=_list_hashes(work, valuation, ranges, counted["keys"]),
        ),
        waiting=left["cells"],
        waiting_keys=left["keys"],
    )


def _list_hashes(work: Work, valuation: Valuation, ranges: Staged, keys: int) -> pa.Array | None:
    if keys > work.project.settings.thresholds.narrowed_heads:
        return None
    failed = work.list_failed(valuation.timeline.output)
    if failed is None:
        return None
    columns = [batch.column(KEY_HASH) for batch in ranges.scan([KEY_HASH])]
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array([*chunks, failed], pa.int64()).unique()


def find_bounds(ranges: Staged) -> tuple[Bounds, ...]:
    """Few ranges that contain all ranges of keys that do not wait."""
    pairs: set[Bounds] = set()
    waits = [WAITS] if WAITS in ranges.schema.names else []
    for batch in ranges.scan([START, END, *waits]):
        computed = batch.filter(~pc.field(WAITS)) if waits else batch
        distinct = computed.group_by([START, END]).aggregate([])
        if distinct.num_rows > MOST_PAIRS:
            distinct = _enclose(distinct)
        pairs |= {(row[START], row[END]) for row in distinct.to_pylist()}
        if len(pairs) > MOST_PAIRS:
            pairs = {_outermost(unite(list(pairs)))}
    found = unite(list(pairs))
    return found if len(found) <= MOST_RANGES else (_outermost(found),)


def _enclose(ranges: pa.Table) -> pa.Table:
    """One range that contains all of these."""
    starts, ends = ranges.column(START), ranges.column(END)
    start = None if starts.null_count else pc.min(starts).as_py()
    end = None if ends.null_count else pc.max(ends).as_py()
    return pa.table({START: pa.array([start], pa.date32()), END: pa.array([end], pa.date32())})


def _outermost(united: Sequence[Bounds]) -> Bounds:
    return united[0][0], united[-1][1]


def unite(pairs: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """The same dates in ranges that neither overlap nor follow each other, ascending."""
    united: list[tuple[date, date]] = []
    for low, high in sorted((low or date.min, high or date.max) for low, high in pairs):
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(
        (None if low == date.min else low, None if high == date.max else high) for low, high in united
    )


def _holds(day: date, bounds: Bounds) -> bool:
    low, high = bounds
    return (low is None or low <= day) and (high is None or day < high)
