"""Valuations: the history of each key on every business date, with values from references."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.shape import fit_types
from strandline.compute.timeline.building import build_table
from strandline.compute.timeline.layout import hash_head, read_part
from strandline.compute.timeline.superseding import Candidates, stage_superseding, write_superseding
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.business_dates import last_day_due
from strandline.model.columns import KEY, Role, quote
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys, find_filter
from strandline.model.timeline import DATE, Valuation

from .calendar import read_business_dates
from .grid import PLACE, Grid
from .heads import judge_heads
from .oracle import expect_valuation
from .reach import END, START, find_keys, reach_all, reach_of_history, reach_of_reference
from .resolving import (
    KEY_HASH,
    MISSING,
    compute_columns,
    find_missing,
    resolve_history,
    resolve_references,
)

_SHOWN_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dates:
    """The dates of a task."""

    business: tuple[date, ...]
    """All business dates that are due."""
    changed: tuple[date, ...]
    """Dates that became or ceased to be business dates."""
    before: date | None
    """The last day that was due when the output was last written. None before its first commit."""

    @property
    def new(self) -> list[date]:
        return [day for day in self.business if self.before is None or day > self.before]


def prepare(work: Work) -> Prepared:
    """Value the keys and dates that a change reaches, and compare with what is published."""
    valuation = valuation_of(work.node)
    own = None if work.task.overwrite else work.read_own()
    dates = _read_dates(work, valuation)
    keys = find_keys(work, valuation)
    if own is None:
        return _build(work, valuation, keys, dates)
    whole = work.task.strategy is Strategy.FULL
    reached = [reach_all(keys)] if whole else _find_reached(work, valuation, own, keys, dates)
    cells, grid = _stage_cells(work, valuation, keys, reached, dates)
    return _value(work, valuation, own, cells, grid, dates, whole=whole)


def expect(work: Work) -> Expected:
    return expect_valuation(work, valuation_of(work.node))


def valuation_of(node: Node) -> Valuation:
    assert isinstance(node.definition, Valuation)
    return node.definition


def _read_dates(work: Work, valuation: Valuation) -> _Dates:
    calendar = valuation.calendar
    due = last_day_due(work.as_of, calendar)
    before = work.as_of_before and last_day_due(work.as_of_before, calendar)
    changed: list[date] = []
    if calendar.dataset and work.own_version is not None and work.has_changes(calendar.dataset):
        column = quote(calendar.column)
        rows = work.read_changes(calendar.dataset).where(f"{column} IS NOT NULL").select(column).distinct()
        changed = [row[0] for row in rows.collect()]
    return _Dates(
        business=tuple(read_business_dates(work, calendar, valuation.timeline.output)),
        changed=tuple(day for day in changed if day <= due),
        before=before,
    )


def _find_reached(
    work: Work, valuation: Valuation, own: DataFrame, keys: DataFrame, dates: _Dates
) -> list[DataFrame]:
    """Everything that changes, the clock, mended folds and requests reach."""
    history = valuation.timeline.output
    reached = [_mended_keys(valuation, own, keys)]
    if _moved(work, history):
        reached += reach_of_history(work, valuation)
    everywhere = Grid.of(dates.business)
    for reference in valuation.references:
        if _moved(work, reference.dataset):
            reached.append(reach_of_reference(work, valuation, reference, keys, everywhere))
    reached += [reach_all(keys, day, day + timedelta(days=1)) for day in dates.changed]
    if dates.new:
        reached.append(reach_all(keys, min(dates.new)))
    if (request := find_filter(work.task.scope)) is not None:
        cells = everywhere.spread(reach_all(keys), START, END).withColumn(DATE, everywhere.date_at(PLACE))
        wanted = cells.where(any_of([typed_filter(request, cells)]))
        ends = {START: F.col(DATE), END: F.date_add(F.col(DATE), 1)}
        reached.append(wanted.withColumns(ends).drop(PLACE, DATE))
    return reached


def _moved(work: Work, dataset: str) -> bool:
    return work.has_changes(dataset) or bool(work.invalidations(dataset))


def _mended_keys(valuation: Valuation, own: DataFrame, keys: DataFrame) -> DataFrame:
    """Keys that were held because their fold failed, and fold again: all their dates."""
    held = read_part(own, Role.HEAD).where("_head.status = 'FAILED' AND coalesce(size(_head.waits), 0) <= 0")
    hashes = held.select(F.col(KEY).alias(KEY_HASH))
    return reach_all(keys.join(hashes, KEY_HASH, "left_semi"))


def _stage_cells(
    work: Work, valuation: Valuation, keys: DataFrame, reached: Sequence[DataFrame], dates: _Dates
) -> tuple[Staged, Grid]:
    """The cells of a task, and the grid of their dates."""
    wide = Grid.of((*dates.business, *dates.changed))
    names = [quote(c) for c in valuation.timeline.key]
    columns = [KEY_HASH, *names, START, END]
    everything = reduce(DataFrame.unionByName, (frame.select(*columns) for frame in reached))
    cells = wide.spread(everything, START, END).select(KEY_HASH, *names, PLACE).distinct()
    cells = cells.join(keys.select(KEY_HASH), KEY_HASH, "left_semi").withColumn(DATE, wide.date_at(PLACE))
    staged = stage(cells.drop(PLACE), f"{work.staging}/cells", {"cells": F.count(F.lit(1))})
    if not staged.counts["cells"]:
        return staged, Grid(())
    found = staged.read(work.session).select(DATE).distinct().collect()
    return staged, Grid.of(row[0] for row in found)


def _resolve(work: Work, valuation: Valuation, cells: DataFrame, grid: Grid) -> Staged:
    """The cells with their values, those without a required reference included."""
    placed = cells.withColumn(PLACE, F.expr(grid.place_of(DATE)))
    known = resolve_history(work, valuation, placed, grid)
    known = resolve_references(work, valuation.references, known, grid)
    known = known.withColumn(MISSING, find_missing(valuation.references))
    values = compute_columns(valuation, known)
    columns = [KEY_HASH, *valuation.timeline.key, DATE, *value_columns(valuation), MISSING]
    counts = {"missing": F.count_if(F.col(MISSING).isNotNull())}
    return stage(values.select(*map(quote, columns)), f"{work.staging}/values", counts)


def value_columns(valuation: Valuation) -> list[str]:
    fields = [field.name for field in valuation.timeline.fields]
    return [*fields, *(column.name for column in valuation.columns)]


def _build(work: Work, valuation: Valuation, keys: DataFrame, dates: _Dates) -> Prepared:
    cells, grid = _stage_cells(work, valuation, keys, [reach_all(keys)], dates)
    candidates, failed = _make_candidates(work, valuation, None, cells, grid, dates)
    return _tell(work, valuation, build_table(work, candidates), failed)


def _value(
    work: Work,
    valuation: Valuation,
    own: DataFrame,
    cells: Staged,
    grid: Grid,
    dates: _Dates,
    *,
    whole: bool,
) -> Prepared:
    candidates, failed = _make_candidates(work, valuation, own, cells, grid, dates)
    rows_full = sum(work.input_rows.values())
    staged = stage_superseding(work, candidates)
    scope = EVERYTHING if whole else Keys(count=cells.counts["cells"], of="cells") if grid.dates else NOTHING
    prepared = write_superseding(
        work,
        staged,
        valuation.timeline.key,
        scope=scope,
        rows_read=cells.counts["cells"],
        rows_full=rows_full,
        whole=whole,
    )
    if prepared.write is None and dates.new:
        # Dates that are due now and have no row: the commit records that they were valued.
        empty = own.limit(0)
        prepared = replace(prepared, write=Write(operation=Operation.COUNTS, rows=empty))
    return _tell(work, valuation, prepared, failed)


def _make_candidates(
    work: Work, valuation: Valuation, own: DataFrame | None, cells: Staged, grid: Grid, dates: _Dates
) -> tuple[Candidates, Staged | None]:
    timeline, values = valuation.timeline, value_columns(valuation)
    columns = [*timeline.key, DATE, *values]
    all_cells = cells.read(work.session)
    resolved: Staged | None = None
    if grid.dates and (business := Grid.of(set(grid.dates) & set(dates.business))).dates:
        computed = all_cells.where(F.col(DATE).isin(list(business.dates))) if dates.changed else all_cells
        resolved = _resolve(work, valuation, computed, business)
        results = resolved.read(work.session)
        new = results.where(F.col(MISSING).isNull()).select(*map(quote, columns))
        missing = results.where(F.col(MISSING).isNotNull()).select(
            KEY_HASH, *map(quote, timeline.key), DATE, MISSING
        )
    else:
        results = _no_values(work, valuation, own)
        new, missing = results.select(*map(quote, columns)), None
    old = None
    if own is not None:
        new = fit_types(new, own, work)
        if grid.dates:
            old = _published(own, valuation, all_cells, grid)
    heads = judge_heads(work, valuation, own, all_cells, missing, dates.business, dates.before)
    candidates = Candidates(key=timeline.key, values=values, new=new, old=old, heads=heads)
    return candidates, resolved if resolved is not None and resolved.counts["missing"] else None


def _no_values(work: Work, valuation: Valuation, own: DataFrame | None) -> DataFrame:
    """No rows, with the columns that rows would have."""
    if own is not None:
        return own.limit(0)
    cells = find_keys(work, valuation).limit(0).withColumn(DATE, F.lit(None).cast("date"))
    return _resolve(work, valuation, cells, Grid((date(1970, 1, 1),))).read(work.session)


def _published(own: DataFrame, valuation: Valuation, cells: DataFrame, grid: Grid) -> DataFrame:
    """The published rows of these cells."""
    key = valuation.timeline.key
    rows = read_part(own, Role.ROW).where(grid.condition(DATE)).withColumn(KEY_HASH, hash_head(key))
    theirs = cells.select(
        F.col(KEY_HASH).alias("__their_hash"),
        F.col(DATE).alias("__their_date"),
        *(F.col(quote(c)).alias(f"__their_{c}") for c in key),
    )
    same = (F.col(KEY_HASH) == F.col("__their_hash")) & (F.col(DATE) == F.col("__their_date"))
    for column in key:
        same = same & F.col(quote(column)).eqNullSafe(F.col(quote(f"__their_{column}")))
    return rows.join(theirs, same, "left_semi").drop(KEY_HASH)


def _tell(work: Work, valuation: Valuation, prepared: Prepared, failed: Staged | None) -> Prepared:
    """The outcome, with what to do about dates that lack a required reference."""
    if failed is None:
        return prepared
    key = [quote(c) for c in valuation.timeline.key]
    rows = failed.read(work.session).where(F.col(MISSING).isNotNull())
    by_key = rows.groupBy(*key, MISSING).agg(F.min(DATE).alias(DATE), F.count(F.lit(1)).alias("n"))
    shown = by_key.limit(_SHOWN_FAILURES).collect()
    keys = rows.select(*key).distinct().count()
    reasons = "; ".join(
        f"({', '.join(map(str, row[: len(key)]))}) has no row of `{row[MISSING]}` on {row[DATE]}"
        + (f" and {row['n'] - 1} other dates" if row["n"] > 1 else "")
        for row in shown
    )
    refused = WorkError(
        f"{'1 key' if keys == 1 else f'{keys} keys'} of `{valuation.output}` cannot be valued on every date:"
        f" {reasons}.",
        remedy="Add the missing rows; those dates are then valued by the next run.",
        slug="reference-missing",
    )
    return replace(prepared, counts={**prepared.counts, "failed": keys}, refused=refused)
