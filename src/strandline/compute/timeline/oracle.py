"""What a fold must have published, recomputed without the code that chooses, restricts or compares (L2).

Every key is folded from its first fact. The stored states are compared too: a wrong one is tomorrow's error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType, StructField, StructType

from strandline.compute.keys import row_hash, user_columns
from strandline.lake.python_rows import map_in_arrow
from strandline.lake.work import Expected, Work
from strandline.model.columns import DELETED, HEAD, ROLE, Role, quote
from strandline.model.timeline import DATE, EPOCH, Timeline

from .folded import serialize_schema
from .folding import Day, FoldError, fold_key
from .layout import FAILED, field_columns
from .streaming import in_utc, load_fold

_FACTS, _RANK, _ON, _FACT = "__facts", "rank", "on", "fact"
STORED_STATE = "state_of_key"
"""The column that contains, for the head of a key, its state, and for a row what is wrong with its epoch."""
_FAILED = "the fold fails"


def expect_timeline(work: Work, timeline: Timeline) -> Expected:
    """Rows and states of all keys. Of keys whose fold fails, only that they are known to fail."""
    own = work.read_own()
    assert own is not None
    facts = work.read_live(timeline.facts)
    facts = facts.select(*map(quote, user_columns(facts.columns)))
    facts = facts.where(F.col(quote(timeline.date)).isNotNull())
    expected = _fold_each(work, timeline, facts)
    published = _read_published(timeline, own)
    failed = expected.where(F.col(STORED_STATE) == _FAILED).select(*map(quote, timeline.key))
    kept = _without(published.where(F.col(DATE).isNotNull()), failed, timeline)
    published = published.where(F.col(DATE).isNull()).unionByName(kept)
    return Expected(rows=expected, published=published, sampled_by=timeline.key, keys=count_keys(own))


def count_keys(own: DataFrame) -> dict[str, int]:
    """The keys of an output by status."""
    heads = own.where(F.col(ROLE) == str(Role.HEAD)).groupBy(f"{HEAD}.status").count()
    return {row[0]: row[1] for row in heads.collect()}


def _fold_each(work: Work, timeline: Timeline, facts: DataFrame) -> DataFrame:
    """Each key as one row with all its facts in order, folded by itself."""
    order = [F.col(quote(c)).alias(f"o{place}") for place, c in enumerate(timeline.order_by)]
    rank = F.struct(F.col(quote(timeline.date)).alias(_ON), *order, row_hash(facts.columns).alias("h"))
    fact = F.struct(*map(quote, facts.columns))
    listed = F.collect_list(F.struct(rank.alias(_RANK), fact.alias(_FACT)))
    grouped = facts.groupBy(*map(quote, timeline.key)).agg(F.array_sort(listed, _by_rank).alias(_FACTS))
    schema = StructType(
        [
            *(grouped.schema[c] for c in timeline.key),
            StructField(DATE, DateType()),
            *field_columns(timeline),
            StructField(STORED_STATE, StringType()),
        ]
    )
    arrow = serialize_schema(schema)
    return map_in_arrow(grouped, _FoldEach(timeline, work.project.folder, arrow), schema)


def _by_rank(one: Column, other: Column) -> Column:
    first, second = one.getField(_RANK), other.getField(_RANK)
    return F.when(first < second, -1).when(first > second, 1).otherwise(0)


@dataclass(frozen=True, slots=True)
class _FoldEach:
    """Folds keys of which each is one row with all its facts."""

    timeline: Timeline
    folder: str
    schema: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        fold = load_fold(self.timeline, self.folder)
        fields = {f.name: f.type for f in self.timeline.fields}
        for batch in batches:
            for record in batch.to_pylist():
                facts = record.pop(_FACTS)
                days = [
                    Day(on=on, facts=[in_utc(fact[_FACT]) for fact in day])
                    for on, day in groupby(facts, key=lambda fact: fact[_RANK][_ON])
                ]
                try:
                    folded = fold_key(fold, fields, days)
                except FoldError:
                    rows = [{**record, STORED_STATE: _FAILED}]
                else:
                    rows = [{**record, DATE: day.on, **day.values} for day in folded.days]
                    rows.append({**record, STORED_STATE: folded.state})
                yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _read_published(timeline: Timeline, own: DataFrame) -> DataFrame:
    """Rows, and the states of keys that have one. No row may have a greater epoch than its key."""
    values = [F.col(quote(f.name)) for f in timeline.fields]
    heads = own.where(F.col(ROLE) == str(Role.HEAD))
    failed = F.col(f"{HEAD}.status") == FAILED
    states = heads.where(failed | F.col(f"{HEAD}.state").isNotNull()).select(
        *map(quote, timeline.key),
        F.lit(None).cast("date").alias(DATE),
        *(F.lit(None).cast(own.schema[f.name].dataType).alias(f.name) for f in timeline.fields),
        F.when(failed, F.lit(_FAILED)).otherwise(F.col(f"{HEAD}.state")).alias(STORED_STATE),
    )
    epochs = heads.select(*map(quote, timeline.key), F.col(EPOCH).alias("__most"))
    rows = own.where(~F.col(DELETED))
    same = [rows[quote(c)].eqNullSafe(epochs[quote(c)]) for c in timeline.key]
    too_great = F.coalesce(F.col(EPOCH) > F.col("__most"), F.lit(True))
    published = rows.join(epochs, same, "left").select(
        *(rows[quote(c)] for c in timeline.key),
        F.col(DATE),
        *values,
        F.when(too_great, F.lit("its epoch is greater than that of its key")).alias(STORED_STATE),
    )
    return published.unionByName(states)


def _without(rows: DataFrame, failed: DataFrame, timeline: Timeline) -> DataFrame:
    same = [rows[quote(c)].eqNullSafe(failed[quote(c)]) for c in timeline.key]
    return rows.join(failed, same, "left_anti")
