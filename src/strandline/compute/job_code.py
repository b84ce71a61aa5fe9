"""Running users' code: SQL over views named as the inputs, or a Python function."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import TokenType, exp

from strandline.lake.literals import spark_literal
from strandline.lake.work import Work
from strandline.model.columns import METADATA_COLUMNS, quote
from strandline.model.errors import WorkError
from strandline.model.project import Job, Language

from .calendar import provide_calendar
from .python_modules import load_job_module


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
    """Run the user's code over given inputs, each with its columns in declared order."""
    inputs = {name: _in_order(work, job, name, rows) for name, rows in inputs.items()}
    if job.language is Language.SQL:
        provide_calendar(work.session, work.project.calendar, job.code)
        return run_sql(work.session, job, inputs, work.as_of)
    provide_calendar(work.session, work.project.calendar)
    bare = {name: rows.drop(*METADATA_COLUMNS) for name, rows in inputs.items()}
    context = Context(
        config=MappingProxyType(dict(job.config)),
        as_of=work.as_of,
        scope=work.task.scope.text,
        row_filter=describe_pending(work),
        cause=work.task.cause.value,
        invalidation_ids=tuple(i.id for given in work.node.inputs for i in work.invalidations(given.dataset)),
        run_id=work.run,
    )
    return call_python(job, work.project.folder, bare, context)


def _in_order(work: Work, job: Job, name: str, rows: DataFrame) -> DataFrame:
    """An input with its columns in declared order. Code that goes by position is refused while a declared column is not in the table."""
    node = work.project.get(work.node.get_input(name).dataset)
    missing = [column for column in node.columns if column not in rows.columns]
    if missing and job.language is Language.SQL and goes_by_position(sqlglot.parse_one(job.code, read="spark")):
        raise WorkError(
            f"{job.file}: the SQL of `{job.name}` takes columns of `{name}` by their position, and its table lacks `{missing[0]}` so far.",
            remedy=f"Run `strandline backfill {node.name} --all`, or name the columns in the SQL.",
            slug="column-not-built",
        )
    return rows.select(*(quote(column) for column in node.in_order(rows.columns)))


def goes_by_position(tree: exp.Expr) -> bool:
    """Whether a query gives names to columns, or unites them, by the place at which they stand."""
    named = any(alias.columns for alias in tree.find_all(exp.TableAlias))
    return named or any(not operation.args.get("by_name") for operation in tree.find_all(exp.SetOperation))


def describe_pending(work: Work) -> str | None:
    """The filters of the invalidations a task answers, as JSON; None when there are none."""
    filters = [dict(i.row_filter) for given in work.node.inputs for i in work.invalidations(given.dataset) if i.row_filter]
    return json.dumps(filters if len(filters) > 1 else filters[0], sort_keys=True) if filters else None


def run_sql(session: SparkSession, job: Job, inputs: Mapping[str, DataFrame], as_of: datetime) -> DataFrame:
    """Run a SQL job. Metadata columns are there only if the SQL asks for them by name, and never in `*`."""
    tree = sqlglot.parse_one(job.code, read="spark")
    asked = {c.name.lower() for c in tree.find_all(exp.Column)} & set(METADATA_COLUMNS)
    for name, rows in inputs.items():
        rows.drop(*(c for c in METADATA_COLUMNS if c not in asked)).createOrReplaceTempView(name)
    text = hide_from_stars(tree, {name: asked & set(rows.columns) for name, rows in inputs.items()}) if asked else job.code
    try:
        return session.sql(fill_parameters(text, {**job.config, "as_of": as_of}).rstrip().rstrip(";"))
    except PySparkException as error:
        raise WorkError(
            f"{job.file}: Spark refuses the SQL of `{job.name}`: {str(error).splitlines()[0]}",
            remedy="Correct the SQL.",
            slug="sql-refused",
        ) from error


def fill_parameters(sql: str, values: Mapping[str, object]) -> str:
    """The text with each `:name` as a literal. Spark's own parameters are not bound where an extension (Delta's) brings its parser."""
    tokens = sqlglot.tokenize(sql, read="spark")
    pieces: list[str] = []
    done = 0
    for before, colon, name in zip([None, *tokens], tokens, tokens[1:], strict=False):
        # `column:field` is a path into a value and no parameter.
        is_path = before is not None and before.end + 1 == colon.start and before.token_type in _BEFORE_A_PATH
        if colon.token_type is TokenType.COLON and name.text in values and colon.end + 1 == name.start and not is_path:
            pieces += [sql[done : colon.start], _spell(name.text, values[name.text])]
            done = name.end + 1
    return "".join([*pieces, sql[done:]])


_BEFORE_A_PATH = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)


def _spell(name: str, value: object) -> str:
    """A value of `config`, or the run's time, as a literal."""
    literal = spark_literal(value)
    if literal is None:
        raise WorkError(
            f"`:{name}` is {value!r}, which cannot be written as a literal of SQL.",
            remedy=f"Give `{name}` under `config` a number of at most 38 digits, a text, a date or true/false, or use it in a Python job.",
            slug="parameter-type",
        )
    return literal


def hide_from_stars(tree: exp.Expr, exposed: Mapping[str, Collection[str]]) -> str:
    """The same query whose `*` over an input leaves out the metadata columns that it asks for by name elsewhere.

    `exposed` has them by input. What a subquery selected by name is its own column, and stays in a `*` over it.
    """
    tree = tree.copy()
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for select in tree.find_all(exp.Select):
        read = [clause.this for clause in (select.args.get("from_"), *(select.args.get("joins") or ())) if clause is not None]
        tables = {t.alias_or_name.lower(): t.name.lower() for t in read if isinstance(t, exp.Table) and t.name.lower() not in common}
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                continue
            owner = item.table.lower() if isinstance(item, exp.Column) else ""
            hidden = [(alias, c) for alias, name in tables.items() if owner in ("", alias) for c in sorted(exposed.get(name, ()))]
            if hidden:
                columns = [exp.column(c, table=None if owner else alias) for alias, c in hidden]
                star.set("except_", [*(star.args.get("except_") or ()), *columns])
    return tree.sql(dialect="spark")


def call_python(job: Job, folder: str, inputs: Mapping[str, DataFrame], context: object) -> DataFrame:
    """Call a Python job's function. What runs is what was declared and hashed, helper modules among it."""
    try:
        module = load_job_module(job, folder)
    except Exception as error:
        raise WorkError(
            f"{job.file} raised {type(error).__name__} while it was loaded: {error}", remedy="Correct the file.", slug="python-raised"
        ) from error
    try:
        result = getattr(module, job.function)(dict(inputs), context)
    except Exception as error:
        raise WorkError(
            f"{job.file}: `{job.function}` raised {type(error).__name__}: {error}", remedy="Correct the function.", slug="python-raised"
        ) from error
    if not isinstance(result, DataFrame):
        raise WorkError(
            f"{job.file}: `{job.function}` returned {type(result).__name__}, not a DataFrame.",
            remedy="Return a Spark DataFrame.",
            slug="python-result",
        )
    return result
