"""A job's result as rows of its table: names, types and keys checked."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline.lake.normal import holds_map
from strandline.model.columns import quote
from strandline.model.errors import StrandlineError, WorkError
from strandline.model.node import Node
from strandline.model.project import Job


def lower_columns(rows: DataFrame) -> DataFrame:
    return rows.select(*(F.col(quote(c)).alias(c.lower()) for c in rows.columns))


def require_columns(job: Job, result: DataFrame, wanted: Sequence[str]) -> None:
    if missing := [c for c in dict.fromkeys(wanted) if c not in result.columns]:
        raise WorkError(
            f"{job.place}: the result of `{job.name}` has no column {', '.join(f'`{c}`' for c in missing)}, which its key names.",
            remedy=f"Its columns are {', '.join(result.columns)}.",
            slug="key-not-in-result",
        )


def require_key_types(job: Job, result: DataFrame, key: Sequence[str]) -> None:
    """Refuse a key that cannot be compared: Spark neither hashes nor orders maps."""
    kinds = {c: result.schema[c].dataType for c in key}
    if maps := [c for c, kind in kinds.items() if holds_map(kind)]:
        raise WorkError(
            f"{job.place}: `{maps[0]}` of `{job.name}` is {kinds[maps[0]].simpleString()}. A map cannot be part of a key.",
            remedy="Take its entries: `map_entries(...)`, sorted, or single values of it.",
            slug="key-type",
        )


def fit_types(rows: DataFrame, own: DataFrame, node: Node) -> DataFrame:
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


def check_row_key(job: Job, rows: DataFrame) -> None:
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


def job_of(node: Node) -> Job:
    assert isinstance(node.definition, Job)
    return node.definition
