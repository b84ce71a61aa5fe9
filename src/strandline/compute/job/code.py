"""Running users' code: SQL over views named as the inputs, or a Python function."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline.compute.calendar import provide_calendar
from strandline.compute.python_modules import load_module
from strandline.lake.work import Work
from strandline.model.columns import METADATA_COLUMNS, quote
from strandline.model.condition_json import to_row_filter
from strandline.model.errors import WorkError
from strandline.model.project import Job, Language
from strandline.model.scope import find_filter
from strandline.model.scope_text import describe
from strandline.sql.job_sql import (
    fill_parameters,
    find_column_names,
    hide_from_stars,
    parse_known,
    uses_positions,
)
from strandline.sql.literals import spark_literal


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


def compute_whole(work: Work, job: Job) -> DataFrame:
    """The job over everything: what a full recompute gives at the pinned versions."""
    inputs = {i.name: work.read_live(i.dataset) for i in work.node.inputs}
    return compute(work, job, inputs)


def compute(work: Work, job: Job, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Run the user's code over these inputs, each with its columns in declared order."""
    inputs = {name: _in_order(work, job, name, rows) for name, rows in inputs.items()}
    if job.language is Language.SQL:
        provide_calendar(work.session, work.project.calendar, job.code)
        return run_sql(work.session, job, inputs, work.as_of)
    provide_calendar(work.session, work.project.calendar)
    bare = {name: rows.drop(*METADATA_COLUMNS) for name, rows in inputs.items()}
    context = Context(
        config=MappingProxyType(dict(job.config)),
        as_of=work.as_of,
        scope=describe(work.task.scope),
        row_filter=describe_pending(work),
        cause=work.task.cause.value,
        invalidation_ids=tuple(
            i.id for input_ in work.node.inputs for i in work.invalidations(input_.dataset)
        ),
        run_id=work.run,
    )
    return call_python(job, work.project.folder, bare, context)


def _in_order(work: Work, job: Job, name: str, rows: DataFrame) -> DataFrame:
    """An input with its columns in declared order.

    Code that uses positions is refused while the table lacks a declared column.
    """
    node = work.project.get(work.node.get_input(name).dataset)
    missing = [column for column in node.columns if column not in rows.columns]
    if missing and job.language is Language.SQL and uses_positions(parse_known(job.code)):
        raise WorkError(
            f"{job.file}: the SQL of `{job.name}` takes columns of `{name}` by their position, and its table"
            f" lacks `{missing[0]}` so far.",
            remedy=f"Run `strandline backfill {node.name} --all`, or name the columns in the SQL.",
            slug="column-not-built",
        )
    return rows.select(*(quote(column) for column in node.in_order(rows.columns)))


def describe_pending(work: Work) -> str | None:
    """The filters of the invalidations that a task answers, as JSON. None if there are none."""
    named = [find_filter(i.scope) for input_ in work.node.inputs for i in work.invalidations(input_.dataset)]
    filters = [to_row_filter(where) for where in named if where and where.parts]
    return json.dumps(filters if len(filters) > 1 else filters[0], sort_keys=True) if filters else None


def run_sql(session: SparkSession, job: Job, inputs: Mapping[str, DataFrame], as_of: datetime) -> DataFrame:
    """Run a SQL job. Metadata columns are visible only if the SQL names them, and never in `*`."""
    named = find_column_names(job.code) & set(METADATA_COLUMNS)
    for name, rows in inputs.items():
        rows.drop(*(c for c in METADATA_COLUMNS if c not in named)).createOrReplaceTempView(name)
    text = (
        hide_from_stars(job.code, {name: named & set(rows.columns) for name, rows in inputs.items()})
        if named
        else job.code
    )
    try:
        return session.sql(fill_parameters(text, {**job.config, "as_of": as_of}, spell).rstrip().rstrip(";"))
    except PySparkException as error:
        raise WorkError(
            f"{job.file}: Spark refuses the SQL of `{job.name}`: {str(error).splitlines()[0]}",
            remedy="Correct the SQL.",
            slug="sql-refused",
        ) from error


def spell(name: str, value: object) -> str:
    """A value of `config`, or the run's time, as a literal."""
    literal = spark_literal(value)
    if literal is None:
        raise WorkError(
            f"`:{name}` is {value!r}, which cannot be written as a literal of SQL.",
            remedy=f"Give `{name}` under `config` a number of at most 38 digits, a text, a date or"
            " true/false, or use it in a Python job.",
            slug="parameter-type",
        )
    return literal


def call_python(job: Job, folder: str, inputs: Mapping[str, DataFrame], context: object) -> DataFrame:
    """Call a Python job's function.

    The code that runs is what was declared and hashed, including helper modules.
    """
    try:
        module = load_module(job.name, job, folder)
    except (Exception, SystemExit) as error:
        raise WorkError(
            f"{job.file} raised {type(error).__name__} while it was loaded: {error}",
            remedy="Correct the file.",
            slug="python-raised",
        ) from error
    try:
        result = getattr(module, job.function)(dict(inputs), context)
    except (Exception, SystemExit) as error:
        raise WorkError(
            f"{job.file}: `{job.function}` raised {type(error).__name__}: {error}",
            remedy="Correct the function.",
            slug="python-raised",
        ) from error
    if not isinstance(result, DataFrame):
        raise WorkError(
            f"{job.file}: `{job.function}` returned {type(result).__name__}, not a DataFrame.",
            remedy="Return a Spark DataFrame.",
            slug="python-result",
        )
    return result
