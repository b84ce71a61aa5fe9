"""One attempt of a task over plain rows, and what the plain workers of several kinds share. No Spark."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from strandline.dispatch.desk import Desk
from strandline.lake.log import LogEntry, read_entries
from strandline.lake.work import Prepared, Write
from strandline.model.catalog_records import NodeRecord, PartitionVersion
from strandline.model.columns import CONFIG, DELETED, INGESTED_AT, KEY, METADATA_COLUMNS, POSITION, STATE
from strandline.model.commits import Operation, WrittenConfig
from strandline.model.node import Node
from strandline.model.plan import Cause, Cursor, Strategy, Task
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from . import table_log
from .hashing import hash_row
from .table_log import Row, Rows

POSITION_COLUMN = (POSITION, pa.struct([("name", pa.string()), ("part", pa.int64()), ("place", pa.int64())]))
INGESTED_COLUMN = (INGESTED_AT, pa.timestamp("us", tz="UTC"))
KEYED_COLUMNS = ((KEY, pa.int64()), (DELETED, pa.bool_()), (CONFIG, pa.string()))

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One attempt of a task, with everything pinned."""

    desk: Desk
    node: Node
    task: Task
    inputs: Mapping[str, Cursor]
    own_version: int | None
    live_rows: int
    record: NodeRecord | None
    config: WrittenConfig

    @property
    def stale(self) -> bool:
        return self.record is not None and any(c.hash != self.config.hash for c in self.record.configs)

    @property
    def full(self) -> bool:
        return self.task.strategy is Strategy.FULL

    @property
    def partitions(self) -> Mapping[str, PartitionVersion]:
        return self.record.partitions if self.record else {}

    @property
    def waiting(self) -> tuple[str, ...]:
        return self.record.waiting if self.record else ()

    def read(self, dataset: str) -> list[Row]:
        return table_log.read_snapshot(self.desk.lake.table(dataset), self.inputs[dataset].version).rows()

    def read_live(self, dataset: str) -> list[Row]:
        return live(self.read(dataset))

    def read_own(self) -> list[Row] | None:
        if self.own_version is None:
            return None
        return table_log.read_snapshot(self.desk.lake.table(self.node.name), self.own_version).rows()

    def after(self, dataset: str) -> int:
        planned = next((i for i in self.task.inputs if i.dataset == dataset), None)
        return planned.after.version if planned and planned.after else -1

    def entries(self, dataset: str) -> list[LogEntry]:
        upto = self.inputs[dataset].version
        return [
            e for e in read_entries(self.desk.lake.table(dataset), self.after(dataset)) if e.version <= upto
        ]

    def read_added(self, dataset: str) -> list[Row]:
        """The rows of the files that were added to an append-only input since the cursor."""
        root = self.desk.lake.table(dataset)
        files = [f.path for e in self.entries(dataset) if e.changes_rows for f in e.added]
        return [dict(row) for file in files for row in table_log._read_rows(f"{root}/{file}")]

    def read_changes(self, dataset: str) -> list[tuple[int, Row]]:
        """Live rows that left (-1) and came (+1) since the cursor, net on declared columns."""
        return net(live(self.read_before(dataset)), self.read_live(dataset))

    def read_before(self, dataset: str) -> list[Row]:
        """An input as it was at the cursor."""
        if self.after(dataset) < 0:
            return []
        return table_log.read_snapshot(self.desk.lake.table(dataset), self.after(dataset)).rows()


def compare(work: Work, schema: pa.Schema, new: Sequence[Row], old: Sequence[Row], *, bury: bool) -> Prepared:
    """Only the keys whose rows differ are written; one that vanishes leaves a `_deleted` row."""
    backfill = work.task.cause is Cause.PERSON
    after, before = by_key(new), by_key(old)
    differing = [
        key
        for key in after.keys() | before.keys()
        if signature(after[key], backfill) != signature(before[key], backfill)
    ]
    gone = buried([before[key][0] for key in differing if bury and not after[key]], work.node.key)
    rows = [*(row for key in differing for row in after[key]), *gone]
    old_live = sum(len(live(before[key])) for key in differing)
    if not rows:
        write = write_rows(Operation.COUNTS, schema, []) if work.full and work.stale else None
        return Prepared(write=write, scope=NOTHING, live_rows=work.live_rows, whole=work.full)
    return Prepared(
        write=write_rows(Operation.REPLACE_KEYS, schema, rows),
        rows_written=len(live(rows)),
        live_rows=work.live_rows + len(live(rows)) - old_live,
        whole=work.full,
        scope=Keys(count=len(differing)),
        tombstones=len(gone),
    )


def buried(rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    """The row that a vanished key is written with (L4)."""
    kept = (*key, *METADATA_COLUMNS)
    return [
        {name: value if name in kept else None for name, value in row.items()} | {DELETED: True}
        for row in rows
    ]


def write_whole(schema: pa.Schema, rows: Sequence[Row]) -> Prepared:
    count = len(live(rows))
    return Prepared(
        write=write_rows(Operation.OVERWRITE, schema, rows),
        rows_written=count,
        live_rows=count,
        whole=True,
        scope=EVERYTHING,
    )


def write_rows(
    operation: Operation, schema: pa.Schema, rows: Sequence[Row], *, received: bool = False
) -> Write:
    return Write(operation=operation, rows=Rows(schema=schema, rows=list(rows)), received=received)  # type: ignore[arg-type]


def live(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if not row.get(DELETED)]


def declared(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in METADATA_COLUMNS}


def net(old: Sequence[Row], new: Sequence[Row]) -> list[tuple[int, Row]]:
    """What left and what came; a row that only moved in rank is neither."""
    count: Counter[tuple[tuple[str, Any], ...]] = Counter()
    count.update(tuple(declared(row).items()) for row in new)
    count.subtract(tuple(declared(row).items()) for row in old)
    return [(sign, dict(row)) for row, sign in count.items() if sign]


def key_hash(values: Key) -> int:
    """`_key` (L5): of the values and of which of them are NULL."""
    text = json.dumps(with_null_flags(values), default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


def with_null_flags(values: Key) -> list[Any]:
    return [part for value in values for part in (value, value is None)]


def row_hash(row: Row) -> int:
    """The tie-breaker of L3: over the non-NULL declared columns in name order."""
    return hash_row(declared(row))


def by_key(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[KEY]].append(row)
    return found


def signature(rows: Iterable[Row], backfill: bool) -> list[str]:
    return sorted(
        repr((sorted(declared(r).items()), r[DELETED], r.get(STATE), r[CONFIG] if backfill else ""))
        for r in rows
    )


def values_of(row: Row, columns: Sequence[str]) -> Key:
    return tuple(row[c] for c in columns)


def place_of(row: Row) -> Key:
    position = row[POSITION]
    return (position["name"], position["part"], position["place"])
