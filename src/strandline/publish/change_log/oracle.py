"""A change log folded from its start gives the table, by code that no task uses (L2)."""

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from strandline.lake.plain_values import plain_column
from strandline.lake.python_rows import map_in_arrow
from strandline.lake.work import Expected, Work
from strandline.model.columns import DELETED, METADATA_COLUMNS, quote
from strandline.model.json_values import write_json
from strandline.model.key_text import key_text
from strandline.model.publishing import ChangeLog
from strandline.publish.changes import Change

_SHAPE = StructType([StructField("key", StringType()), StructField("data", StringType())])


def expect_log(work: Work, log: ChangeLog) -> Expected:
    """The rows of the dataset at the version that was read, and what the log makes of them."""
    own = work.read_own()
    assert own is not None
    rows = _read_state(work, log, work.version(log.dataset))
    at = F.struct("published_at", "version", "position")
    changes = own.withColumn("__at", at)
    resets = changes.where(F.col("operation") == str(Change.RESET)).agg(F.max("__at").alias("__reset"))
    last = resets.collect()[0]["__reset"]
    if last is not None:
        changes = changes.join(F.broadcast(resets), F.col("__at") > F.col("__reset"))
    newest = changes.groupBy("key").agg(F.max_by(F.struct("operation", "data"), "__at").alias("newest"))
    folded = newest.select("key", F.col("newest.operation"), F.col("newest.data"))
    if last is not None:
        before = _read_state(work, log, last["version"]).withColumn("operation", F.lit("INSERT"))
        untouched = before.join(folded.select("key"), "key", "left_anti")
        folded = folded.unionByName(untouched)
    normal = F.udf(normalise, StringType())
    folded = folded.where(F.col("operation") != str(Change.DELETE))
    return Expected(
        rows=rows.select("key", normal("data").alias("data")),
        published=folded.select("key", normal("data").alias("data")),
        sampled_by=("key",),
    )


def _read_state(work: Work, log: ChangeLog, version: int) -> DataFrame:
    """The key's text and the JSON of each live row at a version."""
    rows = work.read(log.dataset, version)
    live = rows.where(~F.col(DELETED)) if DELETED in rows.columns else rows
    columns = [c for c in rows.columns if c not in METADATA_COLUMNS]
    key = log.key

    def show(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [plain_column(batch.column(i)) for i in range(batch.num_columns)]
            shown = [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*values, strict=True)]
            yield pa.RecordBatch.from_pydict(
                {
                    "key": [key_text(row[column] for column in key) for row in shown],
                    "data": [write_json(row) for row in shown],
                },
                pa.schema([("key", pa.string()), ("data", pa.string())]),
            )

    return map_in_arrow(live.select(*map(quote, columns)), show, _SHAPE)


def normalise(text: str) -> str:
    """A row's JSON in a form that is the same for rows that count as equal.

    Doubles have 12 significant digits. A column that is NULL may also be missing.
    """
    row = json.loads(text)
    return json.dumps(_rounded({k: v for k, v in row.items() if v is not None}), sort_keys=True)


def _rounded(value: object) -> object:
    match value:
        case float():
            return f"{value + 0.0:.11e}"
        case dict():
            return {name: _rounded(inner) for name, inner in value.items()}
        case list():
            return [_rounded(inner) for inner in value]
        case _:
            return value
