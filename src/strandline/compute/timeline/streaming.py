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
    values = record[KEY_VALUES].values()
    return (record[KEY_HASH], *(v if type(v) in _SIMPLE else _comparable(v) for v in values))


_SIMPLE = frozenset({str, int, date, type(None)})
"""Types whose values are compared as they are."""


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
        instants = [field.name for field in batch.schema.field(FACT).type if _may_hold_instant(field.type)]
        columns = [
            _list_dicts(column) if pa.types.is_struct(column.type) else column.to_pylist()
            for column in batch.columns
        ]
        names = batch.schema.names
        for values in zip(*columns, strict=True):
            record = dict(zip(names, values, strict=True))
            if instants and record[FACT] is not None:
                record[FACT] |= in_utc({name: record[FACT][name] for name in instants})
            yield record


def _list_dicts(structs: pa.StructArray) -> list[dict[str, Any] | None]:
    """`to_pylist`, column by column, which takes half the time."""
    names = structs.type.names
    columns = [column.to_pylist() for column in structs.flatten()]
    dicts: list[dict[str, Any] | None] = [
        dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
    ]
    if not structs.null_count:
        return dicts
    return [
        found if valid else None for found, valid in zip(dicts, structs.is_valid().to_pylist(), strict=True)
    ]


def _may_hold_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_nested(kind))


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
