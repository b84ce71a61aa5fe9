"""Running users' code: SQL over views named as the inputs, or a Python function."""

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import ModuleType

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import WorkError
from strandline.model.project import Job


def run_sql(session: SparkSession, job: Job, inputs: Mapping[str, DataFrame], as_of: datetime) -> DataFrame:
    """Run a SQL job. Metadata columns are there only if the SQL asks for them by name, and never in `*`."""
    tree = sqlglot.parse_one(job.code, read="spark")
    asked = {c.name.lower() for c in tree.find_all(exp.Column)} & set(METADATA_COLUMNS)
    for name, rows in inputs.items():
        rows.drop(*(c for c in METADATA_COLUMNS if c not in asked)).createOrReplaceTempView(name)
    text = hide_from_stars(tree, asked) if asked else job.code
    arguments: dict[str, object] = {**job.config, **({"as_of": as_of} if job.uses_as_of else {})}
    try:
        return session.sql(text.rstrip().rstrip(";"), args=arguments) if arguments else session.sql(text.rstrip().rstrip(";"))
    except PySparkException as error:
        raise WorkError(
            f"{job.file}: Spark refuses the SQL of `{job.name}`: {str(error).splitlines()[0]}",
            remedy="Correct the SQL.",
            slug="sql-refused",
        ) from error


def hide_from_stars(tree: exp.Expr, asked: set[str]) -> str:
    """The same query whose `*` leaves out the metadata columns that it asks for by name elsewhere."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            node.set("except_", [exp.to_identifier(c) for c in sorted(asked)])
        return node

    return tree.transform(rewrite).sql(dialect="spark")


def call_python(job: Job, folder: str, inputs: Mapping[str, DataFrame], context: object) -> DataFrame:
    """Call a Python job's function. Its module is loaded from the text that was hashed, so what runs is what was declared."""
    module = ModuleType(f"strandline_job_{job.name}")
    module.__file__ = str(Path(folder, job.file))
    sys.modules[module.__name__] = module
    exec(compile(job.code, module.__file__, "exec"), module.__dict__)
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
