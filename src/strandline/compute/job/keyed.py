"""Jobs that replace keys (`keyed`, `cursor`) or everything (`full`)."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.key_set import KeySet, find_keys, read_own
from strandline.compute.keys import typed_key
from strandline.compute.shape import fit_types
from strandline.lake.staging import Staged
from strandline.lake.work import NEW, OLD, SIDE, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY, quote
from strandline.model.plan import Cause, Strategy
from strandline.model.project import Job
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .affected import count_read, find_affected, restrict_inputs
from .code import compute, compute_whole
from .rows import check_row_key, job_of, lower_columns, require_columns, require_key_types
from .scopes import Scoping, make_scoping


def prepare_keyed(work: Work, job: Job, full_rows: int) -> Prepared:
    """Compute the job over its keys and compare with what is published."""
    own = None if work.task.overwrite else work.read_own()
    if own is not None and work.task.strategy is Strategy.RECOMPUTE:
        return _recompute_keys(work, job, own, full_rows)
    rows = _keyed(work, compute_whole(work, job), None)
    if own is None:
        return write_whole(work, rows, rows_full=full_rows, check=lambda built: check_row_key(job, built))
    rows = fit_types(rows, own, work)
    old = own.where(~F.col(DELETED))
    backfill = work.task.cause is Cause.PERSON
    sides = tag(rows, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, compared_columns(sides, backfill=backfill), bury=True)
    check_row_key(job, _with_others(work, job, staged, own))
    return replace_differences(
        work, staged, rows_read=full_rows, rows_full=full_rows, scope=EVERYTHING, whole=True
    )


def _recompute_keys(work: Work, job: Job, own: DataFrame, full_rows: int) -> Prepared:
    scoping = make_scoping(work, job, own)
    keys = find_keys(work, find_affected(work, scoping))
    if not keys.count:
        return Prepared(write=None, rows_full=full_rows, live_rows=work.live_rows, scope=NOTHING)
    # If another key shares a hash with one in the scope, both are computed, selected by their hash alone.
    for scope in (keys, replace(keys, values={})):
        if (prepared := _recompute(work, job, scoping, scope, own, full_rows)) is not None:
            return prepared
    raise AssertionError(f"{work.node.name}: a scope of hashes has no strays")


def _recompute(
    work: Work, job: Job, scoping: Scoping, keys: KeySet, own: DataFrame, full_rows: int
) -> Prepared | None:
    """The keys computed and compared. None if the output has rows of other keys under the same hashes.

    The inputs were not read for those keys.
    """
    inputs, counters = restrict_inputs(work, scoping, keys)
    result = compute(work, job, inputs)
    rows = fit_types(_keyed(work, result, keys), own, work)
    old = read_own(work, keys).where(~F.col(DELETED))
    sides = tag(rows, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    backfill = work.task.cause is Cause.PERSON
    staged = stage_differences(
        work, sides, compared_columns(sides, backfill=backfill), bury=True, strays=scoping.is_stray(keys)
    )
    if staged.counts["strays"]:
        return None
    check_row_key(job, _with_others(work, job, staged, own))
    read = keys.rows + count_read(result, counters)
    within = scoping.within(keys)
    return replace_differences(
        work,
        staged,
        rows_read=read,
        rows_full=full_rows,
        scope=Keys(count=keys.count),
        whole=False,
        within=within,
    )


def _keyed(work: Work, rows: DataFrame, keys: KeySet | None) -> DataFrame:
    """The result with its metadata columns, restricted to the scope.

    Rows outside it may have been computed from part of their inputs.
    """
    job = job_of(work.node)
    result = lower_columns(job, rows)
    require_columns(job, result, (*job.key, *job.row_key))
    require_key_types(job, result, (*job.key, *job.row_key))
    key = typed_key(job.key) if job.key else F.lit(0).cast("bigint")
    result = result.withColumns({KEY: key, DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)})
    return result if keys is None else keys.restrict(result, F.col(KEY))


def _with_others(work: Work, job: Job, staged: Staged, own: DataFrame) -> DataFrame:
    """The rows to be written.

    If the row key lacks the scope key, also those that stay: one may have the same key.
    """
    differing = staged.read(work.session)
    new = differing.where(F.col(SIDE) == NEW)
    if set(job.key) <= set(job.row_key) or not set(job.row_key) <= set(own.columns) or not job.row_key:
        return new
    stay = own.where(~F.col(DELETED)).join(F.broadcast(differing.select(KEY).distinct()), KEY, "left_anti")
    names = [quote(c) for c in job.row_key]
    return new.select(*names).unionByName(stay.select(*names))
