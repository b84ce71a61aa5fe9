"""Valuations: the history of each key on every business date, with values from references."""

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from strandline.compute.shape import fit_types
from strandline.compute.timeline.building import build_table, keep_published
from strandline.compute.timeline.layout import hash_head
from strandline.compute.timeline.superseding import (
    Candidates,
    count_task,
    stage_superseding,
    write_superseding,
)
from strandline.lake.staging import Staged, find_counts, stage
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.columns import quote
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys
from strandline.model.timeline import DATE, EPOCH, Valuation

from .dates import Dates, find_empty_calendar, read_dates
from .heads import judge_heads
from .oracle import expect_valuation
from .raised import name_expression, naming_expressions
from .reach import find_keys
from .resolving import (
    KEY_HASH,
    MISSING,
)
from .scope import Reached, find_everything, find_scope
from .valuing import Valued, lacks, only_missing, value_cells, value_columns, value_first, without_missing

_SHOWN_FAILURES = 3
MARKED_KEYS = "marked keys"
"""What the commit of a batch says is left to do."""


def prepare(work: Work) -> Prepared:
    """Value the keys and dates that a change reaches, and compare with what is published."""
    valuation = valuation_of(work.node)
    work = keep_published(work, (*valuation.timeline.row_key, *value_columns(valuation), EPOCH))
    own = None if work.task.overwrite else work.find_shape()
    dates = read_dates(work, valuation)
    keys = find_keys(work, valuation)
    whole = work.task.strategy is Strategy.FULL
    find = find_everything if own is None or whole else find_scope
    reached = find(work, valuation, keys, dates)
    if own is None:
        valued = value_first(work, valuation, reached)
        candidates = _make_candidates(work, valuation, own, reached, valued, dates)
        # The rows of a date are in the order of their keys, or nearly: so are the parts they are made from.
        name_error = partial(name_expression, valuation)
        prepared = build_table(work, candidates, valued.count, name_error=name_error)
    else:
        valued, differences = _stage_differences(work, valuation, own, reached, dates, whole=whole)
        prepared = _write(work, valuation, own, reached, differences, dates, whole=whole)
    if not dates.business and not keys.isEmpty():
        return replace(prepared, refused=find_empty_calendar(work, valuation))
    return _tell(work, valuation, prepared, reached, valued)


def expect(work: Work) -> Expected:
    return expect_valuation(work, valuation_of(work.node))


def valuation_of(node: Node) -> Valuation:
    assert isinstance(node.definition, Valuation)
    return node.definition


def _stage_differences(
    work: Work, valuation: Valuation, own: DataFrame, reached: Reached, dates: Dates, *, whole: bool
) -> tuple[Valued, Staged]:
    """Value the cells of a task, and compare them with what is published.

    A missing reference concerns the head of a key too. So few cells are computed again if one lacks a
    reference, which is rare, and many are staged before they are compared.
    """
    if not reached.grid.dates:
        nothing = Valued(rows=without_missing(valuation, own.limit(0)))
        return nothing, stage_superseding(
            work, _make_candidates(work, valuation, own, reached, nothing, dates)
        )
    with naming_expressions(valuation):
        cells = value_cells(work, valuation, reached)
        if not whole and _is_little(work, valuation, reached):
            observation = Observation()
            rows = cells.observe(observation, F.count_if(lacks()).alias("missing"))
            valued = Valued(rows=without_missing(valuation, rows))
            candidates = _make_candidates(work, valuation, own, reached, valued, dates)
            differences = stage_superseding(work, candidates)
            if find_counts(observation) == {"missing": 0}:
                return valued, differences
        staged = stage(cells, f"{work.staging}/values", {"missing": F.count_if(lacks())})
        cells = staged.read(work.session)
        valued = Valued(
            rows=without_missing(valuation, cells),
            missing=only_missing(valuation, cells) if staged.counts["missing"] else None,
        )
        candidates = _make_candidates(work, valuation, own, reached, valued, dates)
        return valued, stage_superseding(work, candidates)


def _is_little(work: Work, valuation: Valuation, reached: Reached) -> bool:
    """Whether cells are compared in the query that computes them."""
    thresholds = work.project.settings.thresholds
    few_references = len(valuation.references) <= thresholds.references_at_once
    return few_references and reached.count <= thresholds.compared_at_once


def _write(
    work: Work,
    valuation: Valuation,
    own: DataFrame,
    reached: Reached,
    staged: Staged,
    dates: Dates,
    *,
    whole: bool,
) -> Prepared:
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
    valued: Valued,
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


def _tell(work: Work, valuation: Valuation, prepared: Prepared, reached: Reached, valued: Valued) -> Prepared:
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
