"""Valuations: the history of each key on every business date, with values from references."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.compute.shape import fit_types
from strandline.compute.timeline.building import build_table, keep_published
from strandline.compute.timeline.layout import hash_head
from strandline.compute.timeline.superseding import (
    Candidates,
    count_task,
    stage_superseding,
    write_superseding,
)
from strandline.lake.staging import stage
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.columns import quote
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys
from strandline.model.timeline import DATE, EPOCH, Valuation

from .clustering import cluster_parts
from .dates import Dates, find_empty_calendar, read_dates
from .grid import HIGH, LOW, PLACE, Grid, spread_located
from .heads import judge_heads
from .oracle import expect_valuation
from .raised import name_expression, naming_expressions
from .reach import find_keys
from .resolving import (
    KEY_HASH,
    MISSING,
    compute_columns,
    find_decisive,
    find_missing,
    resolve_history,
    resolve_references,
)
from .scope import Reached, find_everything, find_scope

_SHOWN_FAILURES = 3
MARKED_KEYS = "marked keys"
"""What the commit of a batch says is left to do."""


def prepare(work: Work) -> Prepared:
    """Value the keys and dates that a change reaches, and compare with what is published."""
    valuation = valuation_of(work.node)
    work = keep_published(work, (*valuation.timeline.row_key, *value_columns(valuation), EPOCH))
    own = None if work.task.overwrite else work.read_own()
    dates = read_dates(work, valuation)
    keys = find_keys(work, valuation)
    whole = work.task.strategy is Strategy.FULL
    find = find_everything if own is None or whole else find_scope
    reached = find(work, valuation, keys, dates)
    valued = _value(work, valuation, own, reached)
    candidates = _make_candidates(work, valuation, own, reached, valued, dates)
    if own is None:
        # The rows of a date are in the order of their keys, or nearly: so are the parts they are made from.
        name_error = partial(name_expression, valuation)
        prepared = build_table(work, candidates, valued.count, name_error=name_error)
    else:
        prepared = _write(work, valuation, own, reached, candidates, dates, whole=whole)
    if not dates.business and not keys.isEmpty():
        return replace(prepared, refused=find_empty_calendar(work, valuation))
    return _tell(work, valuation, prepared, reached, valued)


def expect(work: Work) -> Expected:
    return expect_valuation(work, valuation_of(work.node))


def valuation_of(node: Node) -> Valuation:
    assert isinstance(node.definition, Valuation)
    return node.definition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Valued:
    """The cells of a task with their values."""

    rows: DataFrame
    """Key, date and values."""
    count: int
    missing: DataFrame | None
    """The dates on which a required reference has no row. None if there are none.

    Its columns are the hash of the key, the key, the date, and the name of that reference.
    """


def _value(work: Work, valuation: Valuation, own: DataFrame | None, reached: Reached) -> _Valued:
    """Value the cells of a task."""
    columns = [quote(c) for c in (*valuation.timeline.key, DATE, *value_columns(valuation))]
    grid = reached.grid
    if not grid.dates and own is not None:
        return _Valued(rows=own.limit(0).select(*columns), count=0, missing=None)
    if not grid.dates:  # no rows, but the columns that rows would have
        reached, grid = replace(reached, ranges=reached.ranges.limit(0)), Grid((date(1970, 1, 1),))
    parts = resolve_history(work, valuation, reached.locate(grid), grid, reached.kinds)
    lacks = F.col(MISSING).isNotNull()
    counted = {"missing": F.count_if(lacks), "rows": F.count_if(~lacks)}
    if own is None:
        # Values are computed while they are written. To stage them would take longer.
        cells_of = {"rows": F.sum(F.col(HIGH) - F.col(LOW))}
        staged = stage(parts, f"{work.staging}/parts", cells_of)
        parts, counts = staged.read(work.session), {"missing": 0, **staged.counts}
        cells = _compute(work, valuation, parts, grid)
        if valuation.where:
            counts = _count(cells, counted)
        elif decisive := find_decisive(valuation.references):
            known = resolve_references(work, decisive, _spread(parts, grid), grid)
            counts = _count(known.withColumn(MISSING, find_missing(decisive)), counted)
        rows = _compute(work, valuation, cluster_parts(parts, len(grid.dates)), grid)
    else:
        cells = _compute(work, valuation, parts, grid)
        with naming_expressions(valuation):
            staged = stage(cells, f"{work.staging}/values", counted)
        rows = cells = staged.read(work.session)
        counts = dict(staged.counts)
    missing = cells.where(lacks).select(KEY_HASH, *map(quote, valuation.timeline.key), DATE, MISSING)
    return _Valued(
        rows=rows.where(~lacks).select(*columns),
        count=counts["rows"],
        missing=missing if counts["missing"] else None,
    )


def _count(cells: DataFrame, counted: Mapping[str, Column]) -> dict[str, int]:
    return cells.agg(*(column.alias(name) for name, column in counted.items())).collect()[0].asDict()


def _spread(parts: DataFrame, grid: Grid) -> DataFrame:
    """The cells in parts of the history."""
    return spread_located(parts).withColumn(DATE, grid.date_at(PLACE))


def _compute(work: Work, valuation: Valuation, parts: DataFrame, grid: Grid) -> DataFrame:
    """The cells in parts of the history with their values, those without a required reference included."""
    known = resolve_references(work, valuation.references, _spread(parts, grid), grid)
    known = known.withColumn(MISSING, find_missing(valuation.references))
    provide_calendar(work.session, work.project.calendar, valuation.code)
    values = compute_columns(valuation, known)
    columns = [KEY_HASH, *valuation.timeline.key, DATE, *value_columns(valuation), MISSING]
    return values.select(*map(quote, columns))


def value_columns(valuation: Valuation) -> list[str]:
    fields = [field.name for field in valuation.timeline.fields]
    return [*fields, *(column.name for column in valuation.columns)]


def _write(
    work: Work,
    valuation: Valuation,
    own: DataFrame,
    reached: Reached,
    candidates: Candidates,
    dates: Dates,
    *,
    whole: bool,
) -> Prepared:
    staged = stage_superseding(work, candidates)
    scope = EVERYTHING if whole else Keys(count=reached.count, of="cells") if reached.count else NOTHING
    prepared = write_superseding(
        work,
        staged,
        valuation.timeline.key,
        scope=scope,
        rows_read=reached.count,
        rows_full=sum(work.input_rows.values()),
        whole=whole and not reached.waiting,
        within=reached.bounds,
    )
    if reached.waiting:
        prepared = replace(prepared, waiting=(MARKED_KEYS,), batches=1 if reached.count else 0)
    if prepared.write is None and dates.new:
        # Dates that are due now and have no row: the commit records that they were valued.
        prepared = replace(prepared, write=Write(operation=Operation.COUNTS, rows=own.limit(0)))
    return prepared


def _make_candidates(
    work: Work,
    valuation: Valuation,
    own: DataFrame | None,
    reached: Reached,
    valued: _Valued,
    dates: Dates,
) -> Candidates:
    """What was computed beside what is published."""
    timeline, new, old = valuation.timeline, valued.rows, None
    if own is not None:
        new = fit_types(new, own.drop(EPOCH), work)
    if own is not None and not _only_appends(reached, dates):
        rows = work.read_rows(valuation.output, reached.near)
        hashed = rows.withColumn(KEY_HASH, hash_head(timeline.key))
        old = reached.of_published(hashed, timeline.key).drop(KEY_HASH)
    missing = None if valued.missing is None else valued.missing.select(KEY_HASH, DATE, MISSING)
    heads = judge_heads(work, valuation, own, reached, missing, dates)
    return Candidates(key=timeline.key, values=value_columns(valuation), new=new, old=old, heads=heads)


def _only_appends(reached: Reached, dates: Dates) -> bool:
    """Whether everything that is computed is later than what can have been published."""
    last = dates.last_before
    return last is not None and all(low is not None and low > last for low, _ in reached.bounds)


def _tell(
    work: Work, valuation: Valuation, prepared: Prepared, reached: Reached, valued: _Valued
) -> Prepared:
    """The outcome with its counts, and with what to do about dates that lack a required reference."""
    if valued.missing is None:
        return count_task(prepared, reached.keys, waiting=reached.waiting_keys)
    key = [quote(c) for c in valuation.timeline.key]
    rows = valued.missing
    by_key = rows.groupBy(*key, MISSING).agg(F.min(DATE).alias(DATE), F.count(F.lit(1)).alias("n"))
    shown = by_key.limit(_SHOWN_FAILURES).collect()
    keys = rows.select(*key).distinct().count()
    reasons = "; ".join(
        f"({', '.join(map(str, row[: len(key)]))}) has no row of `{row[MISSING]}` on {row[DATE]}"
        + (f" and {row['n'] - 1} other date{'s' if row['n'] > 2 else ''}" if row["n"] > 1 else "")
        for row in shown
    )
    refused = WorkError(
        f"{'1 key' if keys == 1 else f'{keys} keys'} of `{valuation.output}` cannot be valued on every date:"
        f" {reasons}.",
        remedy="Add the missing rows; those dates are then valued by the next run.",
        slug="reference-missing",
    )
    prepared = count_task(prepared, reached.keys, failed=keys, waiting=reached.waiting_keys)
    return replace(prepared, refused=refused)
