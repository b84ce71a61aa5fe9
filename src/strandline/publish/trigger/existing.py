"""The rows as they are now, compared with what receivers were told: `existing: deliver`, and backfills."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from strandline.lake.log import read_entries
from strandline.lake.plain_values import plain_column
from strandline.lake.python_rows import map_in_arrow
from strandline.lake.work import Work
from strandline.model.columns import DELETED, METADATA_COLUMNS, SOURCE_TS, ColumnType, quote
from strandline.model.condition_truth import is_true
from strandline.model.events import Event
from strandline.model.json_values import json_value, write_json
from strandline.model.key_text import key_text
from strandline.publish.change_log.netting import spell_commit_time
from strandline.publish.changes import Change, ExistingRow
from strandline.publish.trigger_fold import TriggerRule, fold_existing

from .recorded import count_positions, find_last_data, find_on, read_history
from .typed_rows import read_typed

_SHAPE = StructType(
    [
        StructField("key", StringType()),
        StructField("source_timestamp", LongType()),
        StructField("data", StringType()),
        StructField("was_on", BooleanType()),
    ]
)
_ARROW = pa.schema(
    [("key", pa.string()), ("source_timestamp", pa.int64()), ("data", pa.string()), ("was_on", pa.bool_())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """What the rows as they are now are compared for."""

    rule: TriggerRule
    dataset: str
    key: tuple[str, ...]
    version: int
    """The version of the dataset that the log is complete to."""
    log: str
    kinds: Mapping[str, ColumnType]
    revision: int
    quiet: bool


def compare_rows(work: Work, comparing: Comparing) -> tuple[Event, ...]:
    """The events that bring receivers to the rows as they are now."""
    on = frozenset() if work.task.overwrite else find_on(work)
    found = _find_rows(work, comparing, on).toArrow().to_pylist()
    there = {row["key"] for row in found if row["was_on"]}
    rows = [_make(row, comparing.kinds) for row in found if row["data"] is not None]
    gone = list(_find_gone(work, comparing, on - there))
    history = read_history(work, [row.key for row in (*rows, *gone)], comparing.revision)
    return fold_existing(
        comparing.rule,
        rows,
        gone,
        history.recorded,
        {key: kind for key, (_, kind) in history.last_of_any.items()},
        version=comparing.version,
        first_position=count_positions(work, comparing.version),
        quiet=comparing.quiet,
    )


def _make(row: Mapping[str, Any], kinds: Mapping[str, ColumnType]) -> ExistingRow:
    typed = read_typed(json.loads(row["data"]), kinds)
    assert typed is not None
    return ExistingRow(key=row["key"], source_timestamp=row["source_timestamp"], data=row["data"], row=typed)


def _find_rows(work: Work, comparing: Comparing, on: frozenset[str]) -> DataFrame:
    """The rows that fire, and those of keys that are on. All others are off and stay so."""
    version = _last_equal_version(work, comparing)
    rows = work.read(comparing.dataset, version)
    live = rows.where(~F.col(DELETED)) if DELETED in rows.columns else rows
    node = work.project.get(comparing.dataset)
    columns = [c for c in node.in_order(rows.columns) if c not in METADATA_COLUMNS]
    at = next(e.committed_at for e in read_entries(work.lake.table(comparing.dataset), comparing.version - 1))
    time = F.expr(spell_commit_time(node.traits.time_unit, "__at"))
    known = F.col(SOURCE_TS) if SOURCE_TS in rows.columns else F.lit(None).cast("bigint")
    timed = live.withColumn("__at", F.lit(at)).withColumn("__time", F.coalesce(known, time))
    look = _Look(comparing=comparing, on=on, columns=tuple(columns))
    return map_in_arrow(timed.select("__time", *map(quote, columns)), look, _SHAPE)


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What a Python worker of Spark does with rows: it keeps those that matter."""

    comparing: Comparing
    on: frozenset[str]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist(list(self._look(batch)), _ARROW)

    def _look(self, batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
        times, *values = (plain_column(batch.column(i)) for i in range(batch.num_columns))
        for time, row in zip(times, zip(*values, strict=True), strict=True):
            named = dict(zip(self.columns, row, strict=True))
            key = key_text(named[column] for column in self.comparing.key)
            used = {name: json_value(named.get(name)) for name in self.comparing.kinds}
            fires = is_true(self.comparing.rule.fire, read_typed(used, self.comparing.kinds) or {})
            was_on = key in self.on
            if fires and was_on:
                yield {"key": key, "was_on": True}
            elif fires or was_on:
                shown = write_json(named)
                yield {"key": key, "source_timestamp": time, "data": shown, "was_on": was_on}


def _last_equal_version(work: Work, comparing: Comparing) -> int:
    """The last version with the rows of the wanted one. Files of earlier versions may be cleaned away."""
    version = comparing.version
    for entry in read_entries(work.lake.table(comparing.dataset), version):
        if entry.changes_rows:
            break
        version = entry.version
    return version


def _find_gone(work: Work, comparing: Comparing, keys: frozenset[str]) -> Iterator[ExistingRow]:
    """The last row of keys that are on and have no row: by the log, or else by their last event."""
    if not keys:
        return
    changes = work.read(comparing.log, work.version(comparing.log)).where(F.col("key").isin(list(keys)))
    place = F.struct("published_at", "version", "position")
    last = changes.groupBy("key").agg(
        F.max_by(F.struct("operation", "source_timestamp", "data"), place).alias("last")
    )
    deleted = {row["key"]: row["last"] for row in last.collect() if row["last"]["operation"] == Change.DELETE}
    others = find_last_data(work, keys - deleted.keys())
    for key in sorted(keys):
        time, data = (
            (deleted[key]["source_timestamp"], deleted[key]["data"]) if key in deleted else others[key]
        )
        yield ExistingRow(key=key, source_timestamp=time, data=data, row={})
