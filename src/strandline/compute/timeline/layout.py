"""How both outputs of a timeline are stored: rows, heads and superseded rows in one table (ADR 14)."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from strandline.compute.keys import key_hash
from strandline.lake.staging import Staged
from strandline.lake.writes import Among
from strandline.model.columns import HEAD, quote
from strandline.model.timeline import DATE, KeyStatus, Timeline
from strandline.sql.literals import spark_literal

CURRENT, REPROCESSING, FAILED = map(str, KeyStatus)
"""The states of a key."""
RANGE_TYPE = StructType([StructField("start", DateType()), StructField("end", DateType())])
"""Dates from a start to an end, which is excluded. NULL has no bound."""
HEAD_TYPE = StructType(
    [
        StructField("state", StringType()),
        StructField("last_on", DateType()),
        StructField("watermark_on", DateType()),
        StructField("status", StringType()),
        StructField("reason", StringType()),
        StructField("updated_at", TimestampType()),
        StructField("waits", ArrayType(DateType())),
        StructField("pending", ArrayType(RANGE_TYPE)),
        StructField("superseded_by", LongType()),
        StructField("superseded_at", TimestampType()),
        StructField("replaces", LongType()),
    ]
)


def hash_row(key: Sequence[str]) -> Column:
    """`_key` of a row."""
    return key_hash([*(F.col(quote(c)) for c in key), F.col(DATE)])


def hash_head(key: Sequence[str], types: Mapping[str, str] | None = None) -> Column:
    """`_key` of the head of a key, which has no date. `types` are the types of the table's key columns."""
    columns = [F.col(quote(c)) if types is None else F.col(quote(c)).cast(types[c]) for c in key]
    return key_hash([*columns, F.lit(None).cast("date")])


def make_head(values: Mapping[str, Column]) -> Column:
    """`_head` with these fields. The others are NULL."""
    return F.struct(
        *(values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in HEAD_TYPE)
    ).cast(HEAD_TYPE)


def name_values(keys: Staged, own: StructType, key: Sequence[str]) -> Among | None:
    """The values of these keys in the first column of the key, if they are few texts or whole numbers."""
    column = key[0]
    simple = {StringType: str, IntegerType: int, LongType: int}.get(type(own[column].dataType))
    values: set[object] = set()
    for batch in keys.scan([column]) if simple else ():
        values.update(batch.column(column).unique().to_pylist())
        if len(values) > _MOST_VALUES:
            return None
    if not values or any(type(value) is not simple for value in values):
        return None
    literals = [spark_literal(value) for value in values]
    return Among(column=column, literals=tuple(sorted(text for text in literals if text is not None)))


_MOST_VALUES = 20


def of_head(name: str) -> Column:
    """A field of `_head`."""
    return F.col(f"{HEAD}.{name}")


def key_types(own: DataFrame, key: Sequence[str]) -> dict[str, str]:
    return {c: own.schema[c].dataType.simpleString() for c in key}


def field_columns(timeline: Timeline) -> list[StructField]:
    """The fields of a timeline as columns of its table."""
    if not timeline.fields:
        return []  # which Spark does not parse
    columns = StructType.fromDDL(", ".join(f"{quote(f.name)} {f.type.stored}" for f in timeline.fields))
    assert isinstance(columns, StructType)
    return columns.fields
