"""The values of the cells of a task: of a first build, and of cells that are compared with published rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.lake.staging import stage
from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.timeline import DATE, Reference, Valuation

from .clustering import cluster_parts
from .grid import HIGH, LOW, PLACE, Grid, spread_located
from .lacking import count_lacking
from .resolving import (
    KEY_HASH,
    MISSING,
    compute_columns,
    find_decisive,
    find_missing,
    resolve_history,
    resolve_references,
)
from .scope import Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """The cells of a task with their values."""

    rows: DataFrame
    """Key, date and values."""
    count: int = 0
    """Of a first build alone."""
    missing: DataFrame | None = None
    """The dates on which a required reference has no row. None if there are none.

    Its columns are the hash of the key, the key, the date, and the name of that reference.
    """


def value_first(work: Work, valuation: Valuation, reached: Reached) -> Valued:
    """Value the cells of a first build while they are written. To stage them would take longer."""
    grid = reached.grid
    if not grid.dates:  # no rows, but the columns that rows would have
        reached, grid = replace(reached, ranges=reached.ranges.limit(0)), Grid((date(1970, 1, 1),))
    parts = resolve_history(work, valuation, reached.locate(grid), grid, reached.kinds)
    staged = stage(parts, f"{work.staging}/parts", {"rows": F.sum(F.col(HIGH) - F.col(LOW))})
    parts = staged.read(work.session)
    cells = _compute(work, valuation, parts, grid)
    counts = {"missing": 0, **staged.counts}
    if valuation.where:
        counts = _count(cells)
    elif decisive := find_decisive(valuation.references):
        counts = count_lacking(work, decisive, parts, grid) or _count_cells(work, decisive, parts, grid)
    rows = _compute(work, valuation, cluster_parts(parts, len(grid.dates)), grid)
    return Valued(
        rows=without_missing(valuation, rows),
        count=counts["rows"],
        missing=only_missing(valuation, cells) if counts["missing"] else None,
    )


def lacks() -> Column:
    """Whether a cell lacks a required reference."""
    return F.col(MISSING).isNotNull()


def without_missing(valuation: Valuation, cells: DataFrame) -> DataFrame:
    """The rows that valued cells give."""
    rows = cells.where(~lacks()) if MISSING in cells.columns else cells
    return rows.select(*map(quote, (*valuation.timeline.key, DATE, *value_columns(valuation))))


def only_missing(valuation: Valuation, cells: DataFrame) -> DataFrame:
    """The cells that lack a required reference."""
    return cells.where(lacks()).select(KEY_HASH, *map(quote, valuation.timeline.key), DATE, MISSING)


def _count(cells: DataFrame) -> dict[str, int]:
    missing, rows = F.count_if(lacks()).alias("missing"), F.count_if(~lacks()).alias("rows")
    return cells.agg(missing, rows).collect()[0].asDict()


def _count_cells(work: Work, decisive: Sequence[Reference], parts: DataFrame, grid: Grid) -> dict[str, int]:
    known = resolve_references(work, decisive, _spread(parts, grid), grid)
    return _count(known.withColumn(MISSING, find_missing(decisive)))


def _spread(parts: DataFrame, grid: Grid) -> DataFrame:
    """The cells in parts of the history."""
    return spread_located(parts).withColumn(DATE, grid.date_at(PLACE))


def value_cells(work: Work, valuation: Valuation, reached: Reached) -> DataFrame:
    """The cells of a task with their values, those without a required reference included."""
    parts = resolve_history(work, valuation, reached.locate(reached.grid), reached.grid, reached.kinds)
    return _compute(work, valuation, parts, reached.grid)


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
