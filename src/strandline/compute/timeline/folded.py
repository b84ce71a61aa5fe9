"""Run a fold in Spark: facts and heads as one sorted stream, folded by Spark's Python workers."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, StringType, StructField, StructType

from strandline.compute.keys import row_hash, user_columns
from strandline.lake.normal import is_nested
from strandline.lake.python_rows import map_in_arrow
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.errors import WorkError
from strandline.model.timeline import DATE, Timeline

from .layout import FAILED, field_columns, hash_head
from .streaming import (
    FACT,
    HEAD_ROLE,
    IS_FACT,
    KEY_HASH,
    KEY_VALUES,
    LAST_ON,
    ON,
    REASON,
    ROLE,
    STATE,
    STATUS,
    Folder,
    load_fold,
)

_ORDER = "__order"


def fold_facts(work: Work, timeline: Timeline, facts: DataFrame, heads: DataFrame | None) -> Staged:
    """Fold facts by key, and stage what that gives: rows, and one head for each key.

    `heads` has the keys that are folded although they may have no fact, with the state from which each
    continues. The key columns of both have the types of the table.
    """
    _require_key_types(timeline, facts)
    stream = _stream_facts(timeline, facts)
    if heads is not None:
        stream = _stream_heads(timeline, heads, stream).unionByName(stream)
    order = [KEY_HASH, KEY_VALUES, IS_FACT, ON, _ORDER]
    ordered = stream.repartition(KEY_HASH).sortWithinPartitions(*order).drop(_ORDER)
    schema = _result_schema(timeline, facts)
    folder = Folder(timeline, work.project.folder, serialize_schema(schema))
    results = map_in_arrow(ordered, folder, schema)
    is_head, failed = F.col(ROLE) == HEAD_ROLE, F.col(STATUS) == FAILED
    counts = {"keys": F.count_if(is_head), "failed": F.count_if(failed), "rows": F.count_if(~is_head)}
    return stage(results, f"{work.staging}/folded", counts)


def require_fold(timeline: Timeline, folder: str) -> None:
    """Refuse a module that does not load or lacks the function, before Spark starts work."""
    try:
        load_fold(timeline, folder)
    except (Exception, SystemExit) as error:
        raise WorkError(
            f"{timeline.fold.file} raised {type(error).__name__} while it was loaded: {error}",
            remedy="Correct the file.",
            slug="python-raised",
        ) from error


def _require_key_types(timeline: Timeline, facts: DataFrame) -> None:
    """Refuse a key of values inside values: two that differ only in NULLs inside have one hash."""
    for column in timeline.key:
        kind = facts.schema[column].dataType
        if is_nested(kind):
            raise WorkError(
                f"{timeline.place}: `{column}` in the key of the timeline `{timeline.name}` is"
                f" {kind.simpleString()}. A list, a struct or a map cannot be part of it.",
                remedy=f"Let the query that makes `{timeline.facts}` return single values of it, or its text:"
                f" `to_json({column})`.",
                slug="key-type",
            )


def _stream_facts(timeline: Timeline, facts: DataFrame) -> DataFrame:
    """Facts in the form of the stream. Equal facts may come in any order, because they are equal."""
    declared = user_columns(facts.columns)
    order = [F.col(quote(c)).alias(f"o{place}") for place, c in enumerate(timeline.order_by)]
    return facts.select(
        hash_head(timeline.key).alias(KEY_HASH),
        F.struct(*map(quote, timeline.key)).alias(KEY_VALUES),
        F.lit(True).alias(IS_FACT),
        F.col(quote(timeline.date)).alias(ON),
        F.lit(None).cast("string").alias(STATE),
        F.struct(*(quote(c) for c in declared)).alias(FACT),
        F.struct(*order, row_hash(declared).alias("h")).alias(_ORDER),
    )


def _stream_heads(timeline: Timeline, heads: DataFrame, facts: DataFrame) -> DataFrame:
    return heads.select(
        F.col(KEY_HASH),
        F.struct(*map(quote, timeline.key)).alias(KEY_VALUES),
        F.lit(False).alias(IS_FACT),
        F.lit(None).cast("date").alias(ON),
        F.col(STATE),
        F.lit(None).cast(facts.schema[FACT].dataType).alias(FACT),
        F.lit(None).cast(facts.schema[_ORDER].dataType).alias(_ORDER),
    )


def _result_schema(timeline: Timeline, facts: DataFrame) -> StructType:
    return StructType(
        [
            *(StructField(c, facts.schema[c].dataType) for c in timeline.key),
            StructField(DATE, DateType()),
            *field_columns(timeline),
            StructField(ROLE, StringType()),
            StructField(STATE, StringType()),
            StructField(LAST_ON, DateType()),
            StructField(STATUS, StringType()),
            StructField(REASON, StringType()),
        ]
    )


def serialize_schema(schema: StructType) -> bytes:
    """The schema as Arrow writes it, for Spark's Python workers. Instants are in UTC, as in the session."""
    serialized: bytes = to_arrow_schema(schema, timezone="UTC").serialize().to_pybytes()
    return serialized
