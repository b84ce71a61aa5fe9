"""Jobs that append: rows whose unique key is new are inserted, and what was published is kept for ever."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.key_set import find_keys, list_keys, read_own
from strandline.compute.keys import row_hash, signatures, typed_key, user_columns
from strandline.compute.shape import fit_types
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Prepared, Work, Write
from strandline.lake.writes import only_new
from strandline.model.columns import CONFIG, DELETED, KEY, quote
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.plan import Strategy
from strandline.model.project import Job
from strandline.model.scope import EVERYTHING, NOTHING, Keys, Scope

from .affected import count_read, find_affected, restrict_inputs
from .code import compute, compute_whole
from .rows import check_row_key, lower_columns, require_columns, require_key_types
from .scopes import make_scoping


def prepare_append(work: Work, job: Job, full_rows: int) -> Prepared:
    """Compute the affected values of the cursor's column, or everything, and insert what is new."""
    own = work.read_own()
    if own is not None and work.task.strategy is Strategy.RECOMPUTE:
        return _append_scope(work, job, own, full_rows)
    rows = _unique(work, job, compute_whole(work, job))
    if own is None or work.task.overwrite:
        return _write_first(work, job, rows, own, full_rows)
    staged = _stage_new(work, job, fit_types(rows, own, work))
    return _insert(work, job, staged, rows_read=full_rows, rows_full=full_rows, scope=EVERYTHING, whole=True)


def _append_scope(work: Work, job: Job, own: DataFrame, full_rows: int) -> Prepared:
    scoping = make_scoping(work, job, own)
    keys = find_keys(work, find_affected(work, scoping))
    if not keys.count:
        return Prepared(write=None, rows_full=full_rows, live_rows=work.live_rows, scope=NOTHING)
    inputs, counters = restrict_inputs(work, scoping, keys)
    result = compute(work, job, inputs)
    # Rows outside the scope may have been computed from part of their inputs.
    inside = scoping.restrict(lower_columns(job, result), job.key, keys)
    staged = _stage_new(work, job, fit_types(_unique(work, job, inside), own, work))
    read = keys.rows + count_read(result, counters)
    scope = Keys(count=keys.count, of=work.node.traits.scopes_are)
    return _insert(work, job, staged, rows_read=read, rows_full=full_rows, scope=scope, whole=False)


def _unique(work: Work, job: Job, result: DataFrame) -> DataFrame:
    """The result with its metadata columns, one row per unique key, independent of Spark's order."""
    rows = lower_columns(job, result)
    require_columns(job, rows, (*job.key, *job.unique_key, *job.row_key))
    require_key_types(job, rows, (*job.key, *job.unique_key, *job.row_key))
    columns = user_columns(rows.columns)
    # The text of a nested value is not always unique, so the signatures follow.
    of_key = Window.partitionBy(*(quote(c) for c in job.unique_key)).orderBy(
        row_hash(columns), *signatures(rows, columns)
    )
    rows = rows.withColumn("__nth", F.row_number().over(of_key)).where(F.col("__nth") == 1).drop("__nth")
    return rows.withColumns(
        {KEY: typed_key(job.unique_key), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)}
    )


def _stage_new(work: Work, job: Job, rows: DataFrame) -> Staged:
    """The rows whose unique key (null-safe, L5) the table lacks.

    Only rows with their hashes are read there.
    """
    candidates = stage(rows, f"{work.staging}/candidates", {"rows": F.count(F.lit(1))})
    hashes = _read_hashes(candidates) if candidates.counts["rows"] else []
    if not hashes:
        return candidates
    there = read_own(work, list_keys(work, hashes, len(hashes)))
    fresh = only_new(candidates.read(work.session), there, job.unique_key)
    return stage(fresh, f"{work.staging}/new", {"rows": F.count(F.lit(1))})


def _read_hashes(staged: Staged) -> list[int]:
    return [int(value) for value in staged.fetch([KEY]).column(KEY).unique().to_pylist()]


def _insert(
    work: Work, job: Job, staged: Staged, *, rows_read: int, rows_full: int, scope: Scope, whole: bool
) -> Prepared:
    new = staged.counts["rows"]
    if new and job.row_key != job.unique_key:
        check_row_key(job, staged.read(work.session))
    operation = Operation.INSERT_NEW if new else Operation.COUNTS
    write = (
        Write(operation=operation, rows=staged.read(work.session)) if new or (whole and work.stale) else None
    )
    return Prepared(
        write=write,
        rows_read=rows_read,
        rows_written=new,
        rows_full=rows_full,
        live_rows=work.live_rows + new,
        scope=scope,
        whole=whole,
    )


def _write_first(work: Work, job: Job, rows: DataFrame, own: DataFrame | None, full_rows: int) -> Prepared:
    """The first rows of the table, or the whole table after its unique key or types changed.

    In the second case it is written with everything it ever published.
    """
    if own is not None:
        published = _keep_published(work, rows, own)
        published = published.withColumns({KEY: typed_key(job.unique_key), DELETED: F.lit(False)}).withColumn(
            "__first", F.lit(True)
        )
        both = published.unionByName(rows.withColumn("__first", F.lit(False)), allowMissingColumns=True)
        of_key = Window.partitionBy(*(quote(c) for c in job.unique_key)).orderBy(
            F.col("__first").desc(), row_hash(user_columns(rows.columns))
        )
        both = both.withColumn("__nth", F.row_number().over(of_key))
        rows = both.where(F.col("__first") | (F.col("__nth") == 1)).drop("__first", "__nth")
    staged = stage(rows, f"{work.staging}/first", {"rows": F.count(F.lit(1))})
    if job.row_key and own is None:
        check_row_key(job, staged.read(work.session))
    return Prepared(
        write=Write(operation=Operation.OVERWRITE, rows=staged.read(work.session)),
        rows_read=full_rows,
        rows_written=staged.counts["rows"],
        rows_full=full_rows,
        live_rows=staged.counts["rows"],
        scope=EVERYTHING,
        whole=True,
    )


def _keep_published(work: Work, rows: DataFrame, own: DataFrame) -> DataFrame:
    """What was published, in the types that the result has now.

    A column that the result no longer has is kept.
    """
    types = {f.name: f.dataType for f in rows.schema}
    retyped = [f.name for f in own.schema if f.name in types and f.dataType != types[f.name]]
    lost = [
        F.count_if(F.col(quote(c)).isNotNull() & F.col(quote(c)).try_cast(types[c]).isNull()).alias(c)
        for c in retyped
    ]
    counts = own.agg(*lost).collect()[0].asDict() if lost else {}
    if misfits := [f"{n:,} of `{c}` as {types[c].simpleString()}" for c, n in counts.items() if n]:
        raise WorkError(
            f"`{work.node.name}` keeps what it published, and some values do not fit the types that it would"
            f" have now: {', '.join(misfits)}.",
            remedy="Give the column another name in the job, so that the old one is kept beside it,"
            " or give the job another `output_dataset`.",
            slug="published-does-not-fit",
        )
    fitted = (
        F.col(quote(c)).cast(types[c]).alias(c) if c in retyped else quote(c)
        for c in own.columns
        if c not in (KEY, DELETED)
    )
    return own.select(*fitted)
