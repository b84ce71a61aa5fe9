"""What a key has, and what its references say, on each date of a set of cells.

A history and a dated reference are step functions: each row holds until the next one of the same key. Steps
are laid onto the dates of the grid, so that a cell finds its row by equality.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline.compute.timeline.layout import hash_head, of_head
from strandline.lake.near import Among, Near
from strandline.lake.work import Work
from strandline.model.columns import KEY, quote
from strandline.model.errors import WorkError
from strandline.model.timeline import DATE, Match, Reference, Valuation
from strandline.model.typed_values import are_compared_exactly

from .grid import HIGH, LOW, PLACE, Grid, following
from .raised import WHERE, refuse_expression

KEY_HASH = "__k"
"""The hash of a key, which is `_key` of its head."""
MISSING = "__missing"
"""The name of a required reference that has no row on a date. NULL if there is none."""
LAST_ON, SETTLED = "__last_on", "__settled"
"""The date of the last row of a key, and whether all ranges of the key begin on or after it."""
_NEXT = "__next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """What is known of some ranges: whether some of settled keys are among them, and some of others."""

    settled: bool
    moving: bool
    once: bool = False
    """Whether each key has a single range."""
    among: tuple[Among, ...] = ()
    """Values of the key that all of them have, if they are few."""
    hashes: pa.Array | None = None
    """Of all of them, and of the keys whose fold fails. None if they are many."""


BOTH_KINDS = Kinds(settled=True, moving=True)


def resolve_history(
    work: Work, valuation: Valuation, ranges: DataFrame, grid: Grid, kinds: Kinds = BOTH_KINDS
) -> DataFrame:
    """The parts of ranges in which one row of the history is in force, with its fields.

    `ranges` are located on the grid and do not overlap. They are intersected with the steps before either is
    laid onto dates, so that no cell has to be joined. Dates before the first of a key are left out.
    """
    key = valuation.timeline.key
    fields = [quote(f.name) for f in valuation.timeline.fields]
    steps = grid.locate(_find_steps(work, valuation, ranges, grid, kinds), DATE, _NEXT)
    # Only the ranges are renamed. Of a hash beside renamed key columns, Spark's optimizer would write down
    # every mix of old and new names, which doubles with each key column.
    asked = {c: f"__asked_{c}" for c in (KEY_HASH, *key, LOW, HIGH)}
    ranges = ranges.withColumnsRenamed(asked)
    same = [F.col(quote(c)).eqNullSafe(F.col(quote(asked[c]))) for c in key]
    overlap = [F.col(LOW) < F.col(asked[HIGH]), F.col(asked[LOW]) < F.col(HIGH)]
    both = ranges.join(steps, reduce(and_, [F.col(KEY_HASH) == F.col(asked[KEY_HASH]), *same, *overlap]))
    low, high = F.greatest(LOW, asked[LOW]).alias(LOW), F.least(HIGH, asked[HIGH]).alias(HIGH)
    return both.select(KEY_HASH, *map(quote, key), *fields, low, high)


def _find_steps(work: Work, valuation: Valuation, ranges: DataFrame, grid: Grid, kinds: Kinds) -> DataFrame:
    """The steps of the history that hold on a date of the grid. A settled key needs only its head."""
    timeline = valuation.timeline
    fields = [quote(f.name) for f in timeline.fields]
    columns = [KEY_HASH, *map(quote, timeline.key), DATE, *fields, _NEXT]
    steps: list[DataFrame] = []
    if kinds.settled:
        settled = _list_keys(ranges.where(SETTLED), kinds)
        heads = work.read_heads(timeline.output, kinds.hashes).withColumnRenamed(KEY, KEY_HASH)
        heads = heads.join(settled, KEY_HASH, "left_semi")
        heads = heads.withColumns({DATE: of_head("last_on"), _NEXT: F.lit(None).cast("date")})
        steps.append(heads.select(*columns))
    if kinds.moving or not steps:
        moving = _list_keys(ranges.where(f"NOT {SETTLED}"), kinds)
        near = Near(dates=((None, following(grid.dates[-1])),), among=kinds.among)
        rows = work.read_rows(timeline.output, near)
        rows = rows.withColumn(KEY_HASH, hash_head(timeline.key)).join(moving, KEY_HASH, "left_semi")
        of_key = f"OVER (PARTITION BY {', '.join(map(quote, timeline.key))} ORDER BY {DATE})"
        rows = rows.withColumn(_NEXT, F.expr(f"lead({DATE}) {of_key}"))
        rows = rows.where(f"{_NEXT} IS NULL OR {_NEXT} > DATE'{grid.dates[0]}'")
        steps.append(rows.select(*columns))
    return reduce(DataFrame.unionByName, steps)


def _list_keys(ranges: DataFrame, kinds: Kinds) -> DataFrame:
    keys = ranges.select(KEY_HASH)
    return keys if kinds.once else keys.distinct()


def resolve_references(
    work: Work, references: Sequence[Reference], cells: DataFrame, grid: Grid
) -> DataFrame:
    """Cells with one struct per reference. It is NULL where the reference has no row."""
    for reference in references:
        require_types(work, reference, cells)
        cells = _resolve(work, reference, cells, grid)
    return cells


def require_types(work: Work, reference: Reference, cells: DataFrame) -> None:
    """Refuse values of types that Spark would round or parse to compare them."""
    theirs, ours = work.read_live(reference.dataset).schema, cells.schema
    for match in reference.on:
        known = ours[match.reference].dataType if match.reference else ours
        assert isinstance(known, StructType)
        kinds = theirs[match.theirs].dataType.simpleString(), known[match.ours].dataType.simpleString()
        if not are_compared_exactly(*kinds):
            raise WorkError(
                f"the reference `{reference.name}` compares `{match.theirs}` of `{reference.dataset}`, which"
                f" is {kinds[0]}, with `{match}`, which is {kinds[1]}.",
                remedy=f"Give both one type: for example, let the query that makes `{reference.dataset}`"
                f" return `cast({match.theirs} as {kinds[1]})`.",
                slug="reference-type",
            )


def _resolve(work: Work, reference: Reference, cells: DataFrame, grid: Grid) -> DataFrame:
    rows = work.read_live(reference.dataset)
    theirs = {match.theirs: f"__on{place}" for place, match in enumerate(reference.on)}
    columns = list(dict.fromkeys((*reference.columns, *([reference.date] if reference.date else []))))
    content = F.struct(*map(quote, columns)) if columns else F.struct(F.lit(True).alias("found"))
    keyed = rows.select(
        *(F.col(quote(c)).alias(name) for c, name in theirs.items()),
        content.alias(reference.name),
        *([F.col(quote(reference.date)).alias(_FROM)] if reference.date else []),
    )
    matches = [F.col(theirs[match.theirs]) == value_of(match) for match in reference.on]
    if reference.date:
        keyed = keyed.where(f"{_FROM} IS NOT NULL AND {_FROM} <= DATE'{grid.dates[-1]}'")
        of_same = f"OVER (PARTITION BY {', '.join(theirs.values())} ORDER BY {_FROM})"
        keyed = keyed.withColumn(_NEXT, F.expr(f"lead({_FROM}) {of_same}"))
        keyed = grid.spread(keyed, _FROM, _NEXT).drop(_FROM, _NEXT)
        keyed = keyed.withColumnRenamed(PLACE, "__their_place")
        matches.append(F.col("__their_place") == F.col(PLACE))
    joined = cells.join(keyed, reduce(and_, matches), "left")
    return joined.drop(*theirs.values(), "__their_place")


_FROM = "__from"


def value_of(match: Match) -> Column:
    """The value by which a reference is looked up."""
    name = f"{quote(match.reference)}.{quote(match.ours)}" if match.reference else quote(match.ours)
    return F.col(name)


def find_missing(references: Sequence[Reference]) -> Column:
    """The first required reference without a row."""
    missing = F.lit(None).cast("string")
    for reference in reversed([r for r in references if r.required]):
        missing = F.when(F.col(quote(reference.name)).isNull(), reference.name).otherwise(missing)
    return missing


def find_decisive(references: Sequence[Reference]) -> list[Reference]:
    """The required references, and those by which they are looked up. A cell is valued if all are there."""
    return with_above(references, {reference.name for reference in references if reference.required})


def with_above(references: Sequence[Reference], names: set[str]) -> list[Reference]:
    """The references with these names, and those by which they are looked up, in their order."""
    needed, found = set(names), []
    for reference in reversed(references):
        if reference.name in needed:
            needed |= {match.reference for match in reference.on if match.reference}
            found.append(reference)
    return found[::-1]


def compute_columns(valuation: Valuation, cells: DataFrame) -> DataFrame:
    """Cells with the declared columns, without rows that `where` leaves out or that lack a reference.

    A cell that lacks a required reference stays, with NULL in its columns, and `__missing` says why.
    """
    present = F.col(MISSING).isNull()
    for column in valuation.columns:
        cells = _add(valuation, cells, column.name, column.sql)
    if valuation.where:
        cells = _add(valuation, cells, WHERE, valuation.where).where(~present | F.col(WHERE))
    return cells


def _add(valuation: Valuation, cells: DataFrame, name: str, sql: str) -> DataFrame:
    """One more column. Where a required reference is missing, it is not computed: it might raise."""
    try:
        return cells.withColumn(name, F.when(F.col(MISSING).isNull(), F.expr(sql)))
    except PySparkException as error:
        raise refuse_expression(valuation, name, sql, error) from error
