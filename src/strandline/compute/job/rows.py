"""A job's result as rows of its table: names, types and keys checked."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.normal import holds_map
from strandline.model.columns import METADATA_COLUMNS, is_column_name, quote
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.project import Job


def lower_columns(job: Job, rows: DataFrame) -> DataFrame:
    """A job's result with column names in lower case. Metadata names are not for jobs."""
    names = [c.lower() for c in rows.columns]
    if twice := sorted({c for c in names if names.count(c) > 1}):
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has more than one column"
            f" {', '.join(f'`{c}`' for c in twice)}.",
            remedy="Give each a name of its own with `AS`.",
            slug="columns-coincide",
        )
    if taken := [c for c in names if c in METADATA_COLUMNS]:
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has a column {', '.join(f'`{c}`' for c in taken)},"
            " a name of metadata.",
            remedy=f"Give it another name, as `{taken[0].lstrip('_')}`."
            " Metadata columns exist without being selected.",
            slug="metadata-column",
        )
    if bad := [c for c in names if not is_column_name(c)]:
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has a column {', '.join(f'`{c}`' for c in bad)},"
            " which cannot be a column's name.",
            remedy="Give it another name with `AS`: letters, digits and `_`, but not `__` at the start.",
            slug="bad-name",
        )
    return rows.toDF(*names)


def require_columns(job: Job, result: DataFrame, required: Sequence[str]) -> None:
    if missing := [c for c in dict.fromkeys(required) if c not in result.columns]:
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has no column"
            f" {', '.join(f'`{c}`' for c in missing)}, which its key names.",
            remedy=f"Add it, or name another key: the columns are {', '.join(result.columns)}.",
            slug="key-not-in-result",
        )


def require_key_types(job: Job, result: DataFrame, key: Sequence[str]) -> None:
    """Refuse a key that cannot be compared: Spark neither hashes nor orders maps."""
    kinds = {c: result.schema[c].dataType for c in key}
    if maps := [c for c, kind in kinds.items() if holds_map(kind)]:
        raise WorkError(
            f"{job.place}: `{maps[0]}` of `{job.name}` is {kinds[maps[0]].simpleString()}."
            " A map cannot be part of a key.",
            remedy="Take its entries: `map_entries(...)`, sorted, or single values of it.",
            slug="key-type",
        )


def check_row_key(job: Job, rows: DataFrame) -> None:
    """Check that no two rows share the key described under `datasets:`."""
    if not job.row_key:
        return
    twice = (
        rows.groupBy(*(quote(c) for c in job.row_key))
        .agg(F.count(F.lit(1)).alias("__n"))
        .where(F.col("__n") > 1)
        .limit(3)
        .collect()
    )
    if twice:
        examples = "; ".join(", ".join(f"{c} = {row[c]}" for c in job.row_key) for row in twice)
        raise WorkError(
            f"`{job.output}` has more than one row for a key described as unique: {examples}.",
            remedy=f"Correct the job, or the key of `{job.output}` under `datasets:`.",
            slug="key-not-unique",
        )


def job_of(node: Node) -> Job:
    assert isinstance(node.definition, Job)
    return node.definition
