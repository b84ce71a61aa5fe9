"""Where a change reaches: a set of (key, from, to) in dates, the end excluded (LANGUAGE, "Timelines").

A set that is too large costs time and is never wrong, because only rows that differ are written.
"""

from collections.abc import Sequence
from datetime import date
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.timeline.layout import FAILED, hash_head, name_values, of_head
from strandline.lake.near import Near
from strandline.lake.work import Work
from strandline.model.columns import KEY, quote
from strandline.model.conditions import EVERY_ROW
from strandline.model.scope import find_filter
from strandline.model.timeline import DATE, Match, Reference, Valuation

from .grid import PLACE, Grid, date_literal, spread_located
from .resolving import KEY_HASH, LAST_ON, SETTLED, resolve_history, resolve_references, value_of, with_above

START, END = "__start", "__end"
"""The first date that is reached, NULL for all, and the first that is not, NULL for none."""


def find_keys(work: Work, valuation: Valuation) -> DataFrame:
    """The keys that may have rows, those whose fold does not fail, with the date of their last row."""
    heads = work.read_heads(valuation.timeline.output)
    return heads.where(of_head("status") != FAILED).select(
        F.col(KEY).alias(KEY_HASH), *map(quote, valuation.timeline.key), of_head("last_on").alias(LAST_ON)
    )


def reach_all(keys: DataFrame, start: date | None = None, end: date | None = None) -> DataFrame:
    return keys.withColumns({START: date_literal(start), END: date_literal(end)})


def reach_ranges(keys: DataFrame, ranges: Sequence[tuple[date, date]]) -> DataFrame:
    """All of these ranges of dates, for all keys. There may be hundreds, so they are written as one text."""
    edges = ",".join(f"{start}/{end}" for start, end in ranges)
    each = keys.withColumn("__edges", F.explode(F.split(F.lit(edges), ",")))
    dates = {name: F.split("__edges", "/")[place].cast("date") for place, name in enumerate((START, END))}
    return each.withColumns(dates).drop("__edges")


def reach_of_history(work: Work, valuation: Valuation) -> DataFrame:
    """From each changed date of a key to its next date that stays the same."""
    timeline = valuation.timeline
    names = [quote(c) for c in timeline.key]
    changed = _changes(work, timeline.output, (*timeline.key, DATE))
    changed_dates = changed.withColumn(KEY_HASH, hash_head(timeline.key))
    staged = None if work.invalidations(timeline.output) else work.find_staged_changes(timeline.output)
    among = name_values(staged, staged.schema, timeline.key) if staged else ()
    rows = work.read_rows(timeline.output, Near(among=among)).select(*names, DATE)
    rows = rows.withColumn(KEY_HASH, hash_head(timeline.key))
    rows = rows.join(changed_dates.select(KEY_HASH).distinct(), KEY_HASH, "left_semi")
    return _until_same(changed_dates, rows, (KEY_HASH, *timeline.key), DATE)


def reach_of_reference(
    work: Work,
    valuation: Valuation,
    reference: Reference,
    keys: DataFrame,
    grid: Grid,
    before: date | None = None,
) -> DataFrame:
    """The keys that look up changed rows of a reference, each from a date to the next that stays the same.

    Only what begins before a date, if one is given.
    """
    on = tuple(match.theirs for match in reference.on)
    columns = (*on, reference.date) if reference.date else on
    changed = _changes(work, reference.dataset, columns)
    if reference.date:
        rows = work.read_live(reference.dataset).select(*map(quote, columns))
        steps = _until_same(changed.where(F.col(quote(reference.date)).isNotNull()), rows, on, reference.date)
    else:
        steps = reach_all(changed)
    if before is not None:
        steps = steps.where(F.col(START).isNull() | (F.col(START) < date_literal(before)))
    steps = steps.toDF(*(f"__their_{c}" if c in on else c for c in steps.columns))
    same = [F.col(quote(f"__their_{m.theirs}")) == value_of(m) for m in reference.on]
    needed = {match.reference for match in reference.on if match.reference}
    above = with_above(valuation.references, needed)
    if _are_constant(reference.on, above, valuation):
        looked_up = resolve_references(work, above, keys, grid)
        found = looked_up.join(steps, reduce(and_, same))
    else:
        grid = _between(grid, steps)
        if not grid.dates:
            return reach_all(keys.limit(0))
        ranges = grid.locate(reach_all(keys), START, END).drop(START, END)
        ranges = ranges.withColumn(SETTLED, F.col(LAST_ON) <= date_literal(grid.dates[0]))
        cells = spread_located(resolve_history(work, valuation, ranges, grid))
        cells = cells.join(keys.select(KEY_HASH, LAST_ON), KEY_HASH)
        looked_up = resolve_references(work, above, cells, grid)
        dates = grid.date_at(PLACE)
        inside = (F.col(START).isNull() | (dates >= F.col(START))) & (
            F.col(END).isNull() | (dates < F.col(END))
        )
        found = looked_up.join(steps, reduce(and_, [*same, inside]))
        found = found.withColumns({START: dates, END: F.date_add(dates, 1)})
    return found.select(KEY_HASH, *map(quote, valuation.timeline.key), LAST_ON, START, END)


def _between(grid: Grid, steps: DataFrame) -> Grid:
    """The dates of the grid from the first start to the last end of these steps."""
    unbounded = [F.count_if(F.col(edge).isNull()) for edge in (START, END)]
    start, end, ever, for_ever = steps.agg(F.min(START), F.max(END), *unbounded).collect()[0]
    return Grid.of(
        day
        for day in grid.dates
        if (ever or (start is not None and day >= start)) and (for_ever or (end is not None and day < end))
    )


def _are_constant(on: Sequence[Match], above: Sequence[Reference], valuation: Valuation) -> bool:
    """Whether the values by which a reference is looked up are the same on all dates of a key."""
    key = valuation.timeline.key
    matches = [*on, *(match for reference in above for match in reference.on)]
    of_key = all(match.reference or match.ours in key for match in matches)
    return of_key and not any(reference.date for reference in above)


def _changes(work: Work, dataset: str, columns: Sequence[str]) -> DataFrame:
    """The distinct values of these columns in changed and in invalidated rows."""
    names = [quote(c) for c in columns]
    found: list[DataFrame] = []
    if work.has_changes(dataset):
        found.append(work.read_changes(dataset).select(*names))
    if invalidations := work.invalidations(dataset):
        live = work.read_live(dataset)
        filters = [typed_filter(find_filter(i.scope) or EVERY_ROW, live) for i in invalidations]
        found.append(live.where(any_of(filters)).select(*names))
    return reduce(DataFrame.unionByName, found).distinct()


def _until_same(changed: DataFrame, rows: DataFrame, by: Sequence[str], column: str) -> DataFrame:
    """Changed dates of a group up to the next date of the group whose row did not change.

    Changed dates that follow each other are one range, which begins with the first of them.
    """
    names, day = [quote(c) for c in by], quote(column)
    both = rows.select(*names, day).distinct().withColumn("__changed", F.lit(0))
    both = both.unionByName(changed.select(*names, day).withColumn("__changed", F.lit(1)))
    marked = both.groupBy(*names, day).agg(F.max("__changed").alias("__changed"))
    of_group = f"OVER (PARTITION BY {', '.join(names)} ORDER BY {day}"
    following = f"{of_group} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
    ends = marked.withColumns(
        {
            END: F.expr(f"min(CASE WHEN __changed = 0 THEN {day} END) {following}"),
            "__before": F.expr(f"coalesce(lag(__changed) {of_group}), 0)"),
        }
    )
    return ends.where("__changed = 1 AND __before = 0").select(*names, F.col(day).alias(START), END)
