"""Fold a stream of sorted Arrow batches, key after key. No Spark: this runs in Spark's Python workers.

A stream contains, for each key, perhaps one head and then its facts, in folding order. Only the facts of one
date are held in memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any

import pyarrow as pa

from strandline.compute.python_modules import load_module
from strandline.model.timeline import KeyStatus, Timeline

from .folding import Day, Fold, FoldError, fold_key

KEY_HASH, KEY_VALUES, IS_FACT, ON, STATE, FACT = "__k", "__key", "__is_fact", "__on", "__state", "__fact"
"""The columns of the stream.

They contain the hash of the key, the key as a struct, whether the record is a fact, its date, the state from
which a head continues, and the fact as a struct.
"""
ROLE, LAST_ON, STATUS, REASON = "__role", "__last_on", "__status", "__reason"
"""The columns of a result beside the key, the date and the fields."""
ROW_ROLE, HEAD_ROLE = "row", "head"
CURRENT, FAILED = str(KeyStatus.CURRENT), str(KeyStatus.FAILED)
_ROWS_PER_BATCH = 10_000

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Folder:
    """Folds the keys of one timeline. It is sent to Spark's workers, where it loads the user's module."""

    timeline: Timeline
    folder: str
    schema: bytes
    """The Arrow schema of the results, serialised."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        results: list[Record] = []
        for result in self._fold_all(_read(batches)):
            results.append(result)
            if len(results) == _ROWS_PER_BATCH:
                yield pa.RecordBatch.from_pylist(results, schema=schema)
                results = []
        if results:
            yield pa.RecordBatch.from_pylist(results, schema=schema)

    def _fold_all(self, records: Iterable[Record]) -> Iterator[Record]:
        fold = load_fold(self.timeline, self.folder)
        for _, same_key in groupby(records, key=_identity):
            yield from self._fold_one(fold, same_key)

    def _fold_one(self, fold: Fold, records: Iterator[Record]) -> Iterator[Record]:
        """The rows of one key, then its head."""
        first = next(records)
        key, state = first[KEY_VALUES], first[STATE]
        facts = _chain_first(first, records) if first[IS_FACT] else records
        fields = {field.name: field.type for field in self.timeline.fields}
        days = (Day(on=on, facts=[r[FACT] for r in day]) for on, day in groupby(facts, key=_on))
        head = {**key, ROLE: HEAD_ROLE}
        try:
            folded = fold_key(fold, fields, days, state)
        except FoldError as error:
            for _ in records:  # the rest of this key, so that the next one begins at its own records
                pass
            yield {**head, STATUS: FAILED, REASON: str(error)}
            return
        for day in folded.days:
            yield {**key, "date": day.on, **day.values, ROLE: ROW_ROLE}
        last = folded.days[-1] if folded.days else None
        values = last.values if last else {}
        last_on = last.on if last else None
        yield {**head, **values, STATUS: CURRENT, STATE: folded.state, LAST_ON: last_on}


def load_fold(timeline: Timeline, folder: str) -> Fold:
    """The user's function. Raises what its module raises."""
    code = timeline.fold
    module = load_module(timeline.name, code, folder)
    fold: Fold = getattr(module, code.function)
    return fold


def _chain_first(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from rest


def _on(record: Record) -> date:
    on: date = record[ON]
    return on


def _identity(record: Record) -> tuple[object, ...]:
    """Equal for records of one key. NaN is equal to itself, and 0.0 to -0.0, as in Spark."""
    return (record[KEY_HASH], *(_comparable(value) for value in record[KEY_VALUES].values()))


def _comparable(value: object) -> object:
    """A value as it is compared, also inside arrays and structs."""
    match value:
        case float():
            return "NaN" if value != value else value
        case list():
            return [_comparable(item) for item in value]
        case dict():
            return [_comparable(item) for item in value.values()]
    return value


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    for batch in batches:
        for record in batch.to_pylist():
            if record[FACT] is not None:
                record[FACT] = in_utc(record[FACT])
            yield record


def in_utc(fact: dict[str, Any]) -> dict[str, Any]:
    """A fact with its instants in UTC. Arrow gives them in a time zone class of its own."""
    return {name: _plain(value) for name, value in fact.items()}


def _plain(value: object) -> object:
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
    return value
