"""How many cells lack a required reference, counted by parts of the history: there are far fewer than cells.

A dated reference has a row on every date from its first one on. So each part lacks it up to some date.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.timeline import Reference

from .grid import HIGH, LOW, Grid
from .resolving import require_types, resolve_references, value_of

_SINCE = "__since"
"""The number of the first date on which a part lacks nothing."""


def count_lacking(
    work: Work, decisive: Sequence[Reference], parts: DataFrame, grid: Grid
) -> dict[str, int] | None:
    """The number of cells that lack a required reference, as `missing`, and of the others, as `rows`.

    `decisive` are the required references and those by which they are looked up. None if a part looks one of
    them up by values that differ from date to date: then cells have to be counted.
    """
    dated = {reference.name for reference in decisive if reference.date}
    if any(match.reference in dated for reference in decisive for match in reference.on):
        return None
    parts = parts.withColumn(_SINCE, F.lit(0))
    for reference in decisive:
        if reference.date:
            require_types(work, reference, parts)
            parts = _find_first(work, reference, parts, grid)
        else:
            parts = resolve_references(work, [reference], parts, grid)
            absent = F.col(quote(reference.name)).isNull() if reference.required else F.lit(False)
            parts = _raise_since(parts, F.when(absent, len(grid.dates)).otherwise(0))
    lacking = F.least(F.col(HIGH), F.greatest(F.col(LOW), F.col(_SINCE))) - F.col(LOW)
    cells = F.col(HIGH) - F.col(LOW)
    counted = parts.agg(F.sum(lacking).alias("missing"), F.sum(cells - lacking).alias("rows"))
    return {name: int(n or 0) for name, n in counted.collect()[0].asDict().items()}


def _find_first(work: Work, reference: Reference, parts: DataFrame, grid: Grid) -> DataFrame:
    """Parts from the first date on which a dated reference has a row, which is all dates after that."""
    theirs = {match.theirs: f"__on{place}" for place, match in enumerate(reference.on)}
    rows = work.read_live(reference.dataset).where(F.col(quote(reference.date)).isNotNull())
    renamed = [F.col(quote(column)).alias(name) for column, name in theirs.items()]
    first = rows.groupBy(*renamed).agg(F.min(quote(reference.date)).alias("__first"))
    same = [F.col(theirs[match.theirs]) == value_of(match) for match in reference.on]
    parts = parts.join(first, reduce(and_, same), "left")
    place = F.expr(f"CASE WHEN __first IS NULL THEN {len(grid.dates)} ELSE {grid.place_of('__first')} END")
    return _raise_since(parts, place).drop(*theirs.values(), "__first")


def _raise_since(parts: DataFrame, place: Column) -> DataFrame:
    return parts.withColumn(_SINCE, F.greatest(F.col(_SINCE), place))
