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

from strandline.compute.keys import spell_hash
from strandline.lake.near import Among
from strandline.lake.staging import Staged
from strandline.model.columns import HEAD, quote
from strandline.model.timeline import DATE, KeyStatus, Timeline

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


def hash_row(key: Sequence[str]) -> str:
    """SQL for `_key` of a row."""
    return spell_hash([*map(quote, key), DATE])


def hash_head(key: Sequence[str], types: Mapping[str, str] | None = None) -> Column:
    """`_key` of the head of a key, which has no date. `types` are the types of the table's key columns."""
    return F.expr(hash_head_sql(key, types))


def hash_head_sql(key: Sequence[str], types: Mapping[str, str] | None = None) -> str:
    """The same in SQL."""
    columns = [quote(c) if types is None else f"CAST({quote(c)} AS {types[c]})" for c in key]
    return spell_hash([*columns, "CAST(NULL AS DATE)"])


def spell_head(values: Mapping[str, str]) -> str:
    """SQL for `_head` with these fields, which are SQL too. The others are NULL.

    It is text, because each column that is built in Python takes calls to the JVM, and a head has many.
    """
    fields = (f"'{f.name}', {values.get(f.name, 'NULL')}" for f in HEAD_TYPE)
    return f"CAST(named_struct({', '.join(fields)}) AS {_HEAD_DDL})"


def name_values(keys: Staged, own: StructType, key: Sequence[str]) -> tuple[Among, ...]:
    """By column of the key: the values of these keys, if they are few texts or whole numbers."""
    simple = {c: _SIMPLE[type(own[c].dataType)] for c in key if type(own[c].dataType) in _SIMPLE}
    values: dict[str, set[object]] = {column: set() for column in simple}
    for batch in keys.scan(list(simple)) if simple else ():
        for column in list(values):
            values[column].update(batch.column(column).unique().to_pylist())
            if len(values[column]) > _MOST_VALUES:
                del values[column]
        if not values:
            return ()
    return tuple(
        Among(column=column, values=tuple(sorted(few)))  # type: ignore[arg-type]
        for column, few in values.items()
        if few and all(type(value) is simple[column] for value in few)
    )


_SIMPLE: dict[type, type] = {StringType: str, IntegerType: int, LongType: int}
_MOST_VALUES = 20


_HEAD_DDL = HEAD_TYPE.simpleString()


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
