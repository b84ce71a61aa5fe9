"""Jobs: users' SQL or Python over the affected keys, or over everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from strandline.lake.reads import SIGN
from strandline.lake.staging import Staged, find_counts
from strandline.lake.work import NEW, OLD, SIDE, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY, METADATA_COLUMNS, quote
from strandline.model.errors import StrandlineError, WorkError
from strandline.model.node import By, Input, Node, Via
from strandline.model.plan import Cause, Strategy
from strandline.model.project import Job, Language

from .calendar import provide_calendar
from .compare import compared_columns, replace_differences, stage_differences, tag, write_whole
from .job_code import call_python, run_sql
from .keys import typed_key, user_columns
from .scope import Keys, find_keys, read_own


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a Python job may know of its task."""

    config: Mapping[str, object]
    as_of: datetime
    scope: str
    row_filter: str | None
    cause: str
    invalidation_ids: tuple[str, ...]
    run_id: str


def prepare_job(work: Work) -> Prepared:
    """Compute the job over its scope and compare with what is there."""
    job = _job_of(work.node)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    own = None if work.task.overwrite else work.read_own()
    if own is not None and work.task.strategy is Strategy.RECOMPUTE:
        return _recompute_keys(work, job, own, full_rows)
    rows = _keyed(work, compute_whole(work, job), None)
    if own is None:
        return write_whole(work, rows, rows_full=full_rows, check=lambda built: _check_row_key(work, job, built))
    rows = _fit(rows, own, work.node)
    old = own.where(~F.col(DELETED))
    backfill = work.task.cause is Cause.PERSON
    sides = tag(rows, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, compared_columns(sides, backfill=backfill), bury=True)
    _check_row_key(work, job, _with_others(work, job, staged, own))
    return replace_differences(work, staged, rows_read=full_rows, rows_full=full_rows, scope="everything", whole=True)


def _recompute_keys(work: Work, job: Job, own: DataFrame, full_rows: int) -> Prepared:
    types = {c: own.schema[c].dataType for c in job.key}
    keys = find_keys(work, find_affected(work, job, types))
    if not keys.count:
        return Prepared(write=None, rows_full=full_rows, live_rows=work.live_rows, scope="no key")
    inputs, counters = restrict_inputs(work, job, keys, types)
    result = compute(work, job, inputs)
    rows = _keyed(work, result, keys)
    rows = _fit(rows, own, work.node)
    old = read_own(work, keys).where(~F.col(DELETED))
    sides = tag(rows, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, compared_columns(sides, backfill=False), bury=True)
    _check_row_key(work, job, _with_others(work, job, staged, own))
    read = keys.rows + _count_read(result, counters)
    scope = f"{keys.count} keys"
    return replace_differences(work, staged, rows_read=read, rows_full=full_rows, scope=scope, whole=False)


def find_affected(work: Work, job: Job, types: Mapping[str, DataType]) -> DataFrame:
    """The key hashes that changed rows of any input map to, before and after the change."""
    found: DataFrame | None = None
    for planned in work.task.inputs:
        relation = work.node.get_input(planned.name).relation
        if not planned.changes or not isinstance(relation, By | Via) or work.after(planned.dataset) >= work.version(planned.dataset):
            continue  # nothing past the cursor: what this run might have changed it did not
        changed = work.read_changes(planned.dataset)
        keys = _keys_of(work, job, planned.name, changed, types)
        found = keys if found is None else found.unionByName(keys)
    if found is None:
        raise AssertionError(f"{work.node.name} has no changed input to recompute keys for")
    return found


def _keys_of(work: Work, job: Job, name: str, rows: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    """The keys that rows of an input belong to; through another input at its old and its new version where they have none themselves."""
    given = work.node.get_input(name)
    match given.relation:
        case By(columns=columns):
            return rows.select(typed_key(columns, types, job.key).alias(KEY))
        case Via(input=through, on=on):
            other = work.node.get_input(through)
            there = work.read_live(other.dataset)
            if work.after(other.dataset) < work.version(other.dataset) and any(i.changes for i in work.task.inputs if i.name == through):
                left = work.read_changes(other.dataset).where(F.col(SIGN) < 0)
                there = there.select(*user_columns(there.columns)).unionByName(
                    left.select(*user_columns(_unsigned(left))), allowMissingColumns=True
                )
            wanted = rows.select(*(F.col(quote(here)).alias(f"__on{i}") for i, (here, _) in enumerate(on))).distinct()
            same = [F.col(f"__on{i}").eqNullSafe(F.col(quote(other_name))) for i, (_, other_name) in enumerate(on)]
            return _keys_of(work, job, through, there.join(F.broadcast(wanted), same, "left_semi"), types)
        case other_relation:
            raise AssertionError(f"{name} is related by {other_relation}")


def _unsigned(rows: DataFrame) -> list[str]:
    return [c for c in rows.columns if c != SIGN]


def restrict_inputs(work: Work, job: Job, keys: Keys, types: Mapping[str, DataType]) -> tuple[dict[str, DataFrame], dict[str, Observation]]:
    """Each input as the job may read it: inside the scope where its relation says how, whole otherwise; and counters of the rows read."""
    done: dict[str, DataFrame] = {}

    def restricted(given: Input) -> DataFrame:
        if given.name not in done:
            rows = work.read_live(given.dataset)
            match given.relation:
                case By(columns=columns):
                    rows = keys.restrict(rows, typed_key(columns, types, job.key))
                case Via(input=through, on=on):
                    there = restricted(work.node.get_input(through))
                    wanted = there.select(*(F.col(quote(name)).alias(f"__on{i}") for i, (_, name) in enumerate(on))).distinct()
                    same = [F.col(f"__on{i}").eqNullSafe(F.col(quote(here))) for i, (here, _) in enumerate(on)]
                    rows = rows.join(wanted, same, "left_semi")
                case _:
                    pass
            done[given.name] = rows
        return done[given.name]

    counters = {f"rows of {i.name} for {work.attempt}": i for i in work.node.inputs}
    observed = {name: Observation(name) for name in counters}
    counted = {i.name: restricted(i).observe(observed[name], F.count(F.lit(1)).alias("rows")) for name, i in counters.items()}
    return counted, observed


def _count_read(result: DataFrame, counters: Mapping[str, Observation]) -> int:
    """Input rows left after restriction to the scope, for the report alone.

    An input that the user's code leaves out is in no plan, and would be waited for. One whose counter Spark dropped counts as not read.
    """
    plan = result._jdf.queryExecution().analyzed().toString()
    told = [find_counts(counter) for name, counter in counters.items() if name in plan]
    return sum(counted["rows"] or 0 for counted in told if counted)


def compute_whole(work: Work, job: Job) -> DataFrame:
    """The job over everything: what a full recompute gives at the pinned versions."""
    inputs = {i.name: work.read_live(i.dataset) for i in work.node.inputs}
    return compute(work, job, inputs)


def compute(work: Work, job: Job, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Run the user's code over given inputs."""
    if job.language is Language.SQL:
        provide_calendar(work.session, work.project.calendar, job.code)
        return run_sql(work.session, job, inputs, work.as_of)
    provide_calendar(work.session, work.project.calendar)
    bare = {name: rows.drop(*METADATA_COLUMNS) for name, rows in inputs.items()}
    context = Context(
        config=MappingProxyType(dict(job.config)),
        as_of=work.as_of,
        scope=work.task.scope.text,
        row_filter=None,
        cause=work.task.cause.value,
        invalidation_ids=(),
        run_id=work.run,
    )
    return call_python(job, work.project.folder, bare, context)


def _keyed(work: Work, rows: DataFrame, keys: Keys | None) -> DataFrame:
    """The result with its metadata columns, and only the scope's rows: others may have been computed from part of their inputs."""
    job = _job_of(work.node)
    result = rows.select(*(F.col(quote(c)).alias(c.lower()) for c in rows.columns))
    if missing := [c for c in (*job.key, *job.row_key) if c not in result.columns]:
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has no column {', '.join(f'`{c}`' for c in missing)}, which its key names.",
            remedy=f"Its columns are {', '.join(result.columns)}.",
            slug="key-not-in-result",
        )
    key = typed_key(job.key) if job.key else F.lit(0).cast("bigint")
    result = result.withColumns({KEY: key, DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)})
    return result if keys is None else keys.restrict(result, F.col(KEY))


def _fit(rows: DataFrame, own: DataFrame, node: Node) -> DataFrame:
    """The result in the types of the table. Another type in a column that was there means a change that only a backfill may make."""
    changed = _type_changes(rows.schema, own.schema)
    if changed:
        raise StrandlineError(
            f"`{node.name}` now gives {', '.join(changed)}: the types of its table are others.",
            remedy=f"Run `strandline backfill {node.name} --all` to write it anew with these types.",
            slug="types-changed",
        )
    return rows


def _type_changes(new: StructType, old: StructType) -> list[str]:
    stored = {f.name: f.dataType.simpleString() for f in old}
    return [f"`{f.name}` as {f.dataType.simpleString()}" for f in new if f.name in stored and stored[f.name] != f.dataType.simpleString()]


def _with_others(work: Work, job: Job, staged: Staged, own: DataFrame) -> DataFrame:
    """The rows to be written; where the row key does not hold the scope key, beside those that stay, for one of them may be its twin."""
    differing = staged.read(work.session)
    new = differing.where(F.col(SIDE) == NEW)
    if set(job.key) <= set(job.row_key) or not set(job.row_key) <= set(own.columns) or not job.row_key:
        return new
    stay = own.where(~F.col(DELETED)).join(F.broadcast(differing.select(KEY).distinct()), KEY, "left_anti")
    names = [quote(c) for c in job.row_key]
    return new.select(*names).unionByName(stay.select(*names))


def _check_row_key(work: Work, job: Job, rows: DataFrame) -> None:
    """The key described under `datasets:` names one row each."""
    if not job.row_key:
        return
    twice = rows.groupBy(*(quote(c) for c in job.row_key)).agg(F.count(F.lit(1)).alias("__n")).where(F.col("__n") > 1).limit(3).collect()
    if twice:
        examples = "; ".join(", ".join(f"{c} = {row[c]}" for c in job.row_key) for row in twice)
        raise WorkError(
            f"`{job.output}` has more than one row for a key described as unique: {examples}.",
            remedy=f"Correct the job, or the key of `{job.output}` under `datasets:`.",
            slug="key-not-unique",
        )


def _job_of(node: Node) -> Job:
    assert isinstance(node.definition, Job)
    return node.definition
