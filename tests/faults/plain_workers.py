"""The workers of `dispatch/workers.py` in plain Python over rows: what a task would write, and the commits of the table log.

Enough for the project of `world.py`: files of JSON lines, record sets, a chain, jobs of each kind of write. No Spark.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from strandline.compute.chain import worker as chains
from strandline.compute.chain.branches import Block, Step, build, follow
from strandline.dispatch.desk import Desk
from strandline.ingest.listing import list_files
from strandline.ingest.survey import Piece, survey
from strandline.lake.compaction import Compaction
from strandline.lake.log import LogEntry, read_entries
from strandline.lake.work import Prepared, Write
from strandline.lake.writes import Ticket
from strandline.model.catalog_records import NodeRecord, PartitionVersion
from strandline.model.columns import CONFIG, DELETED, INGESTED_AT, KEY, METADATA_COLUMNS, PAYLOAD, POSITION
from strandline.model.commits import BuiltPartition, CommitMetadata, Invalidation, Operation, WrittenConfig
from strandline.model.filters import Comparison, Filter, Operator, from_row_filter
from strandline.model.hashing import digest
from strandline.model.leases import Lease
from strandline.model.metadata import to_json
from strandline.model.node import By, Node, Relation
from strandline.model.partitions import find_span, is_final, name_number
from strandline.model.plan import Cause, Cursor, Strategy, Task
from strandline.model.project import Chain, FactDataset, FileSource, Job, Partitioning, Quarantine, Snapshot

from . import table_log
from .hashing import hash_row
from .table_log import Row, Rows

_POSITION = (POSITION, pa.struct([("name", pa.string()), ("part", pa.int64()), ("place", pa.int64())]))
_INGESTED = (INGESTED_AT, pa.timestamp("us", tz="UTC"))
_KEYED = ((KEY, pa.int64()), (DELETED, pa.bool_()), (CONFIG, pa.string()))
_RECEIVED = pa.schema([(PAYLOAD, pa.string()), _POSITION, _INGESTED])
_REFUSED = pa.schema(
    [("slug", pa.string()), ("payload", pa.string()), _POSITION, _INGESTED, (CONFIG, pa.string())]
)
_TYPES = {"string": pa.string(), "bigint": pa.int64()}
_RESULTS = {
    "name": pa.string(),
    "colour": pa.string(),
    "worth": pa.int64(),
    "price": pa.int64(),
    "number": pa.int64(),
    "hash": pa.string(),
    "weight": pa.int64(),
}
"""The columns that a job of the project may give."""

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


def prepare(
    desk: Desk,
    node: Node,
    task: Task,
    lease: Lease,
    record: NodeRecord | None,
    inputs: dict[str, Cursor],
    config: WrittenConfig,
) -> Prepared:
    own = desk.pins.find(node.name)
    work = Work(
        desk=desk,
        node=node,
        task=task,
        inputs=inputs,
        own_version=own.version if own else None,
        live_rows=desk.pins.rows(node.name) if own else 0,
        record=record if own else None,
        config=config,
    )
    match node.kind:
        case FileSource.kind:
            return prepare_source(work)
        case FactDataset.kind:
            return prepare_facts(work)
        case Quarantine.kind:
            return prepare_quarantine(work)
        case Snapshot.kind:
            return prepare_snapshot(work)
        case Chain.kind:
            return prepare_chain(work)
        case Job.kind:
            return prepare_job(work, _job_of(node))
        case kind:
            raise ValueError(f"no plain worker for a {kind}")


def prepare_job(work: Work, job: Job) -> Prepared:
    if job.unique_key:
        return prepare_append(work)
    return prepare_keyed(work) if job.partition is None else prepare_partitions(work, job, job.partition)


def prepare_source(work: Work) -> Prepared:
    source = work.node.definition
    assert isinstance(source, FileSource)
    folder, wanted = work.desk.project.folder, set(work.task.files)
    known = dict(work.record.files) if work.record else {}
    found = survey(
        source, folder, tuple(f for f in list_files(source.files, folder) if f.path in wanted), known
    )
    rows = [
        {PAYLOAD: text, POSITION: at, INGESTED_AT: work.desk.now()}
        for piece in found.pieces
        for at, text in _lines(piece)
    ]
    if not rows and work.own_version is not None:
        return Prepared(write=None, live_rows=work.live_rows, files=found.seen, notes=found.notes)
    operation = Operation.APPEND if rows else Operation.COUNTS
    return Prepared(
        write=_write(operation, _RECEIVED, rows, received=True),
        rows_read=len(rows),
        rows_written=len(rows),
        live_rows=work.live_rows + len(rows),
        counts={"received": len(rows)},
        files=(*(p.read for p in found.pieces), *found.seen),
    )


def _lines(piece: Piece) -> Iterable[tuple[Row, str]]:
    data = piece.file.read_bytes()[piece.start : piece.end]
    for offset, line in enumerate(data.decode().split("\n")):
        if line.strip():
            yield (
                {"name": piece.read.path, "part": piece.read.revision, "place": piece.first_place + offset},
                line,
            )


def prepare_facts(work: Work) -> Prepared:
    """Decode what came since the cursor; append what passes, with the counts of L10."""
    dataset = _facts_of(work.node)
    passed, refused = decode(work, dataset)
    counts = {
        "offered": len(passed) + len(refused),
        "accepted": len(passed),
        "duplicates": 0,
        "quarantined": len(refused),
    }
    operation = Operation.OVERWRITE if work.full else Operation.APPEND if passed else Operation.COUNTS
    return Prepared(
        write=_write(operation, _facts_schema(dataset), passed),
        rows_written=len(passed),
        live_rows=len(passed) + (0 if work.full else work.live_rows),
        counts={**counts, "passed_over": 0, "derived": 0},
        whole=work.full,
    )


def prepare_quarantine(work: Work) -> Prepared:
    refused = decode(work, _facts_of(work.node))[1]
    if not refused and (not work.full or work.own_version is None):
        return Prepared(write=None, live_rows=work.live_rows)
    return Prepared(
        write=_write(Operation.OVERWRITE if work.full else Operation.APPEND, _REFUSED, refused),
        rows_written=len(refused),
        live_rows=len(refused) + (0 if work.full else work.live_rows),
        whole=work.full,
    )


def decode(work: Work, dataset: FactDataset) -> tuple[list[Row], list[Row]]:
    """The rows that pass and those that fail."""
    received = work.read(dataset.source) if work.full else work.read_added(dataset.source)
    passed, refused = [], []
    for row in received:
        beside = {POSITION: row[POSITION], INGESTED_AT: row[INGESTED_AT], CONFIG: work.config.hash}
        fact, slug = decode_line(dataset, row[PAYLOAD])
        if fact is None:
            refused.append({"slug": slug, "payload": row[PAYLOAD], **beside})
        else:
            passed.append(
                {
                    **fact,
                    **beside,
                    KEY: key_hash(tuple(fact[c] for c in work_key(dataset))),
                    DELETED: fact.get("op") == "D",
                }
            )
    return passed, refused


def decode_line(dataset: FactDataset, text: str) -> tuple[Row | None, str]:
    try:
        message = json.loads(text)
    except ValueError:
        return None, "not-json"
    fact: Row = {}
    for column in dataset.columns:
        value = message.get(column.path[0])
        if (
            value is not None
            and column.type is not None
            and column.type.stored == "bigint"
            and not isinstance(value, int)
        ):
            return None, "bad-value"
        fact[column.name] = value
    if any(fact[c] is None for c in (*work_key(dataset), *dataset.require)):
        return None, "null-key"
    return fact, ""


def prepare_snapshot(work: Work) -> Prepared:
    """The best row of each key among what is new and what stands (L3)."""
    dataset = _facts_of(work.node)
    name = work.node.inputs[0].dataset
    own = None if work.task.overwrite else work.read_own()
    if own is None:
        return _write_whole(_facts_schema(dataset), fold(work.read(name), dataset, work.config))
    if work.full:
        return _compare(
            work, _facts_schema(dataset), fold(work.read(name), dataset, work.config), own, bury=True
        )
    incoming = read_increment(work, name)
    scope = {row[KEY] for row in incoming}
    old = [row for row in stands(own) if row[KEY] in scope]
    return _compare(
        work, _facts_schema(dataset), fold([*incoming, *old], dataset, work.config), old, bury=False
    )


def stands(own: list[Row]) -> list[Row]:
    """The rows that stand for all earlier facts: deleted ones too, or an older fact would bring the record back."""
    return own


def read_increment(work: Work, name: str) -> list[Row]:
    return work.read_added(name)


def fold(facts: Iterable[Row], dataset: FactDataset, config: WrittenConfig) -> list[Row]:
    best: dict[int, Row] = {}
    for fact in facts:
        key = fact[KEY]
        best[key] = fact if key not in best else choose(best[key], fact, dataset)
    return [{**row, CONFIG: config.hash} for row in best.values()]


def choose(one: Row, other: Row, dataset: FactDataset) -> Row:
    """The whole row that wins."""
    return max(one, other, key=lambda row: rank(row, dataset))


def rank(row: Row, dataset: FactDataset) -> tuple[Any, ...]:
    assert dataset.record_set is not None
    ordered = tuple((row[c] is not None, row[c]) for c in dataset.record_set.order_by)
    return (ordered, row_hash(row), _place(row))


def row_hash(row: Row) -> int:
    """The tie-breaker of L3: over the non-NULL declared columns in name order."""
    return hash_row(declared(row))


def key_hash(values: Key) -> int:
    """`_key` (L5): of the values and of which of them are NULL."""
    text = json.dumps([part for value in values for part in (value, value is None)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


def prepare_keyed(work: Work) -> Prepared:
    """Compute the job over the keys that changed, or everything, and write the keys that differ."""
    job = _job_of(work.node)
    own = None if work.task.overwrite else work.read_own()
    schema = pa.schema([(name, _RESULTS[name]) for name in RESULTS[job.output]] + list(_KEYED))
    if own is None:
        return _write_whole(schema, keyed_rows(work, job, None))
    if work.full:
        return _compare(work, schema, keyed_rows(work, job, None), live(own), bury=True)
    scope = find_affected(work, job)
    old = [row for row in live(own) if _values(row, job.key) in scope]
    return _compare(work, schema, keyed_rows(work, job, scope), old, bury=True)


def keyed_rows(work: Work, job: Job, scope: Collection[Key] | None) -> list[Row]:
    """The job's result, and only the scope's rows: others may have been computed from part of their inputs."""
    rows = compute(work, job, scope)
    beside = {DELETED: False, CONFIG: work.config.hash}
    kept = [row for row in rows if scope is None or _values(row, job.key) in scope]
    return [{**row, **beside, KEY: key_hash(_values(row, job.key))} for row in kept]


def compute(work: Work, job: Job, scope: Collection[Key] | None) -> list[Row]:
    """The Python of the job's SQL, over its inputs inside the scope where their relation says how."""
    inputs = {}
    for given in work.node.inputs:
        rows = [declared(row) for row in work.read_live(given.dataset)]
        columns = restricting_columns(given.relation, job, rows)
        inputs[given.name] = [r for r in rows if scope is None or not columns or _values(r, columns) in scope]
    return JOBS[job.output](inputs, job.config)


def restricting_columns(relation: Relation, job: Job, rows: Sequence[Row]) -> tuple[str, ...]:
    """What an input is restricted by: nothing, unless its relation says so."""
    return relation.columns if isinstance(relation, By) else ()


def find_affected(work: Work, job: Job) -> set[Key]:
    """The keys of rows that left and came, and of what someone says is wrong."""
    keys: set[Key] = set()
    for given in work.node.inputs:
        if not isinstance(given.relation, By):
            continue
        columns = given.relation.columns
        keys |= changed_keys(work.read_changes(given.dataset), columns)
        keys |= {_values(row, columns) for row in find_invalidated(work, given.dataset)}
    return keys


def find_invalidated(work: Work, dataset: str) -> list[Row]:
    """The rows that someone says are wrong. A commit that changed rows speaks for itself, whatever it carries."""
    said = [
        i
        for e in work.entries(dataset)
        if e.metadata and not e.changes_rows
        for i in e.metadata.invalidations
    ]
    filters = [from_row_filter(dict(i.row_filter)) for i in said]
    return (
        [row for row in work.read_live(dataset) if any(matches(f, row) for f in filters)] if filters else []
    )


def changed_keys(changes: Iterable[tuple[int, Row]], columns: Sequence[str]) -> set[Key]:
    """Of the rows that left as well as of those that came: a row that moves repairs both keys."""
    return {_values(row, columns) for _, row in changes}


def matches(given: Filter, row: Row) -> bool:
    return all(_compares(c, row[c.column]) for c in given.comparisons)


def _compares(asked: Comparison, value: Any) -> bool:
    match asked.operator:
        case Operator.IS_NULL:
            return value is None
        case Operator.EQ:
            return bool(value == asked.value)
        case Operator.GTE:
            return value is not None and value >= asked.value
        case Operator.LT:
            return value is not None and value < asked.value
        case other:
            raise ValueError(f"no story asks for {other}")


def prepare_append(work: Work) -> Prepared:
    """Insert the rows whose unique key is new; what was published stays."""
    job = _job_of(work.node)
    own = work.read_own()
    scope = None if work.full or own is None else find_affected(work, job)
    schema = pa.schema([(name, _RESULTS[name]) for name in RESULTS[job.output]] + list(_KEYED))
    rows = [{**row, KEY: key_hash(_values(row, job.unique_key))} for row in keyed_rows(work, job, scope)]
    if own is None or work.task.overwrite:
        kept = published(own or [], job)
        return _write_whole(schema, [*kept, *only_new(rows, kept, job.unique_key)])
    new = only_new(rows, own, job.unique_key)
    said = new or (work.full and work.stale)
    write = _write(Operation.INSERT_NEW if new else Operation.COUNTS, schema, new) if said else None
    return Prepared(write=write, rows_written=len(new), live_rows=work.live_rows + len(new), whole=work.full)


def published(own: Sequence[Row], job: Job) -> list[Row]:
    """What a table that is written anew keeps: everything it ever had."""
    return [{**row, KEY: key_hash(_values(row, job.unique_key))} for row in own]


def only_new(rows: Sequence[Row], own: Sequence[Row], unique_key: Sequence[str]) -> list[Row]:
    """One row a unique key that is not there yet, null-safe."""
    there = {_values(row, unique_key) for row in own}
    first: dict[Key, Row] = {}
    for row in sorted(rows, key=row_hash):
        first.setdefault(_values(row, unique_key), row)
    return [row for key, row in first.items() if key not in there]


def prepare_partitions(work: Work, job: Job, partitioning: Partitioning) -> Prepared:
    """Build the partitions that changed rows fall in, and those that have become final; the others wait."""
    own = None if work.task.overwrite else work.read_own()
    (given,) = work.node.inputs
    rows = work.read_live(given.dataset)
    names = find_partitions(work, partitioning, given.dataset, whole=own is None or work.full)
    tip = max((row[partitioning.column] for row in rows), default=None)
    built = set(work.partitions) if own is not None else set()
    due = [n for n in sorted(names) if n in built or _is_final(work, partitioning, n, tip)]
    waiting = tuple(sorted(names - set(due)))
    if not due and own is not None:
        return Prepared(write=None, live_rows=work.live_rows, waiting=waiting)
    inside = [declared(row) for row in rows if _partition(partitioning, row) in due]
    beside = {DELETED: False, CONFIG: work.config.hash}
    results = JOBS[job.output]({given.name: inside}, job.config)
    new = [{**row, **beside, KEY: key_hash((_partition(partitioning, row),))} for row in results]
    schema = pa.schema([(name, _RESULTS[name]) for name in RESULTS[job.output]] + list(_KEYED))
    counts = Counter(_partition(partitioning, row) for row in new)
    if own is None:
        partitions = tuple(BuiltPartition(partition_key=n, rows=counts[n]) for n in due)
        return replace(_write_whole(schema, new), partitions=partitions, waiting=waiting)
    return _replace_partitions(work, schema, {key_hash((n,)): n for n in due}, new, own, waiting)


def find_partitions(work: Work, partitioning: Partitioning, dataset: str, *, whole: bool) -> set[str]:
    """The partitions a task may have to build: of rows that left and came, of what someone says is wrong, and those that waited."""
    if whole:
        return {_partition(partitioning, row) for row in work.read_live(dataset)} | set(work.partitions)
    rows = [row for _, row in work.read_changes(dataset)] + find_invalidated(work, dataset)
    return {_partition(partitioning, row) for row in rows} | {*work.task.partitions, *work.waiting}


def _replace_partitions(
    work: Work,
    schema: pa.Schema,
    due: Mapping[int, str],
    new: Sequence[Row],
    own: Sequence[Row],
    waiting: tuple[str, ...],
) -> Prepared:
    """The write of the partitions that differ, whole; those that do not are as they were."""
    asked = work.task.cause is Cause.PERSON
    after, before = _by_key(new), _by_key(row for row in live(own) if row[KEY] in due)
    differing = [key for key in due if _signature(after[key], asked) != _signature(before[key], asked)]
    same = [name for key, name in due.items() if key not in differing]
    # Built and found as it was: new, or now known to be what this configuration gives.
    told = [n for n in same if n not in work.partitions or ((work.full or asked) and work.stale)]
    built = [BuiltPartition(partition_key=due[key], rows=len(after[key])) for key in differing]
    built += [
        BuiltPartition(partition_key=n, rows=work.partitions[n].row_count if n in work.partitions else 0)
        for n in told
    ]
    rows = [row for key in differing for row in after[key]]
    write = None
    if differing:
        write = replace(_write(Operation.REPLACE_PARTITIONS, schema, rows), replaced=tuple(differing))
    elif built or (work.full and work.stale):
        write = _write(Operation.COUNTS, schema, [])
    return Prepared(
        write=write,
        rows_written=len(rows),
        live_rows=work.live_rows + len(rows) - sum(len(before[key]) for key in differing),
        whole=work.full,
        partitions=tuple(built),
        waiting=waiting,
    )


def _partition(partitioning: Partitioning, row: Row) -> str:
    return name_number(partitioning, row[partitioning.column])


def _is_final(work: Work, partitioning: Partitioning, name: str, tip: int | None) -> bool:
    span = find_span(partitioning, work.desk.project.calendar, name)
    return span is not None and is_final(partitioning, span, {} if tip is None else {"": tip})


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """`branches.Announced` over rows."""

    blocks: Mapping[str, Block]

    def between(self, low: int, high: int) -> list[Block]:
        return [b for b in self.blocks.values() if low <= b.number <= high]

    def count(self, low: int) -> int:
        return sum(b.number >= low for b in self.blocks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`branches.Canonical` over rows."""

    blocks: Mapping[int, Block]

    def hash_at(self, number: int) -> str | None:
        return self.blocks[number].hash if number in self.blocks else None

    def tip(self) -> Block | None:
        return self.blocks[max(self.blocks)] if self.blocks else None

    def summed_after(self, number: int) -> Any:
        raise AssertionError("the chain goes by its heaviest block")


def prepare_chain(work: Work) -> Prepared:
    """Walk the branches that newly announced blocks reach, or all of them. A reorganisation is one commit with its invalidation."""
    chain = work.node.definition
    assert isinstance(chain, Chain)
    (given,) = work.node.inputs
    first = first_announced(work.read(given.dataset))
    announced = Announced(blocks={hash_: _block(row) for hash_, row in first.items()})
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("hash", pa.string()),
            ("parent", pa.string()),
            ("weight", pa.int64()),
            _POSITION,
            *_KEYED,
        ]
    )
    own = None if work.task.overwrite else work.read_own()
    walked = None if own is None or work.full else _walk(work, chain, announced, live(own))
    if own is None or walked is None:
        built = build(
            chain.head, announced, min((b.number for b in announced.blocks.values()), default=0), stride=1000
        )
        rows = canonical_rows(work, first, dict(enumerate(built.hashes, built.first)))
        whole = (
            _write_whole(schema, rows)
            if own is None
            else replace(_compare(work, schema, rows, live(own), bury=True), whole=True)
        )
        return replace(
            whole,
            write=whole.write or _write(Operation.COUNTS, schema, []),
            counts={"waiting": built.waiting},
        )
    hashes, waiting, step = walked
    old = [row for row in live(own) if row["number"] in hashes]
    prepared = _compare(work, schema, canonical_rows(work, first, hashes), old, bury=True)
    counted = _write(Operation.COUNTS, schema, []) if waiting else None
    told = (chains._invalidation(work, chain, (), step),) if step and step.is_reorg else ()  # type: ignore[arg-type]
    return replace(
        prepared,
        write=prepared.write or counted,
        counts={"waiting": waiting} if waiting else {},
        invalidations=told,
    )


def _walk(
    work: Work, chain: Chain, announced: Announced, own: Sequence[Row]
) -> tuple[dict[int, str | None], int, Step | None] | None:
    """By number at stake: the hash that is canonical now; how many blocks more wait; the step. None: a lower block moves the anchor."""
    dataset = work.node.inputs[0].dataset
    new = [_block(row) for row in first_announced(work.read_added(dataset)).values()]
    before = {row["hash"]: row["number"] for row in work.read_before(dataset)}
    if not new:
        return {}, 0, None
    lowest = min(b.number for b in new)
    anchor = min(before.values(), default=lowest)
    if lowest < anchor:
        return None
    published = Published(blocks={row["number"]: announced.blocks[row["hash"]] for row in own})
    known = frozenset((number, hash_) for hash_, number in before.items())
    found = follow(chain.head, announced, published, new, known, anchor, stride=1000)
    hashes: dict[int, str | None] = {
        b.number: b.hash for b in new if b.hash in before and published.hash_at(b.number) == b.hash
    }
    if found.step is not None:
        branch = {b.number: b.hash for b in found.step.branch}
        hashes |= {number: branch.get(number) for number in range(found.step.fork + 1, found.step.last + 1)}
    return hashes, found.waiting - found.joined, found.step


def canonical_rows(work: Work, first: Mapping[str, Row], hashes: Mapping[int, str | None]) -> list[Row]:
    """The canonical blocks as they were first announced."""
    rows = [first[hash_] for hash_ in hashes.values() if hash_ is not None]
    beside = {DELETED: False, CONFIG: work.config.hash}
    return [
        {**declared(row), POSITION: row[POSITION], KEY: key_hash((row["number"],)), **beside} for row in rows
    ]


def first_announced(rows: Iterable[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in sorted(rows, key=_place):
        found.setdefault(row["hash"], row)
    return found


def _block(row: Row) -> Block:
    return Block(
        number=row["number"],
        hash=row["hash"],
        parent=row["parent"],
        weight=row["weight"],
        seen=(*_place(row), row["hash"]),
    )


def _compare(
    work: Work, schema: pa.Schema, new: Sequence[Row], old: Sequence[Row], *, bury: bool
) -> Prepared:
    """Only the keys whose rows differ are written; one that vanishes leaves a `_deleted` row."""
    backfill = work.task.cause is Cause.PERSON
    after, before = _by_key(new), _by_key(old)
    differing = [
        key
        for key in after.keys() | before.keys()
        if _signature(after[key], backfill) != _signature(before[key], backfill)
    ]
    gone = buried([before[key][0] for key in differing if bury and not after[key]], work.node.key)
    rows = [*(row for key in differing for row in after[key]), *gone]
    old_live = sum(len(live(before[key])) for key in differing)
    if not rows:
        write = _write(Operation.COUNTS, schema, []) if work.full and work.stale else None
        return Prepared(write=write, live_rows=work.live_rows, whole=work.full)
    return Prepared(
        write=_write(Operation.REPLACE_KEYS, schema, rows),
        rows_written=len(live(rows)),
        live_rows=work.live_rows + len(live(rows)) - old_live,
        whole=work.full,
        scope=f"{len(differing)} keys",
        tombstones=len(gone),
    )


def buried(rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    """The row that a vanished key is written with (L4)."""
    kept = (*key, *METADATA_COLUMNS)
    return [
        {name: value if name in kept else None for name, value in row.items()} | {DELETED: True}
        for row in rows
    ]


def _write_whole(schema: pa.Schema, rows: Sequence[Row]) -> Prepared:
    count = len(live(rows))
    return Prepared(
        write=_write(Operation.OVERWRITE, schema, rows),
        rows_written=count,
        live_rows=count,
        whole=True,
        scope="everything",
    )


def _write(operation: Operation, schema: pa.Schema, rows: Sequence[Row], *, received: bool = False) -> Write:
    return Write(operation=operation, rows=Rows(schema=schema, rows=list(rows)), received=received)  # type: ignore[arg-type]


def hash_schema(write: Write) -> str:
    rows: Rows = write.rows  # type: ignore[assignment]
    return digest([[f.name, str(f.type)] for f in rows.schema])


def commit_write(desk: Desk, write: Write, lease: Lease, metadata: str) -> None:
    ticket = Ticket(dataset=lease.dataset, token=lease.token, metadata=metadata)
    rows: Rows = write.rows  # type: ignore[assignment]
    match write.operation:
        case Operation.APPEND | Operation.COUNTS | Operation.INSERT_NEW:
            table_log.append(
                rows, desk.lake, ticket, received=write.received, first=desk.pins.find(lease.dataset) is None
            )
        case Operation.REPLACE_KEYS:
            table_log.replace_keys(rows, desk.lake, ticket)
        case Operation.REPLACE_PARTITIONS:
            table_log.replace_where(rows, desk.lake, ticket, lambda row: row[KEY] in write.replaced)
        case Operation.OVERWRITE:
            table_log.overwrite(rows, desk.lake, ticket)
        case other:
            raise ValueError(f"no worker prepares {other}")


def commit_fence(desk: Desk, node: Node, lease: Lease) -> None:
    table_log.commit_nothing(desk.lake, _bare_ticket(desk, node, lease, Operation.FENCE))


def commit_invalidation(
    desk: Desk, node: Node, lease: Lease, invalidations: tuple[Invalidation, ...]
) -> None:
    table_log.commit_nothing(
        desk.lake, _bare_ticket(desk, node, lease, Operation.INVALIDATE, invalidations=invalidations)
    )


def commit_purge(desk: Desk, node: Node, lease: Lease) -> None:
    table_log.purge(desk.lake, _bare_ticket(desk, node, lease, Operation.PURGE))


def commit_compaction(desk: Desk, node: Node, lease: Lease, compaction: Compaction) -> None:
    table_log.compact(desk.lake, node.name, _bare_ticket(desk, node, lease, Operation.COMPACT).metadata)


def commit_cleaning(desk: Desk, node: Node, lease: Lease, readable_from: int) -> None:
    table_log.commit_nothing(
        desk.lake, _bare_ticket(desk, node, lease, Operation.CLEAN, readable_from=readable_from)
    )


def _bare_ticket(desk: Desk, node: Node, lease: Lease, operation: Operation, **said: Any) -> Ticket:
    metadata = CommitMetadata.bare(
        run=desk.run, node=node.name, token=lease.token, operation=operation, as_of=desk.as_of.isoformat()
    )
    return Ticket(dataset=node.name, token=lease.token, metadata=to_json(replace(metadata, **said)))


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


def work_key(dataset: FactDataset) -> tuple[str, ...]:
    return dataset.record_set.key if dataset.record_set else ()


def _by_key(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[KEY]].append(row)
    return found


def _signature(rows: Iterable[Row], backfill: bool) -> list[str]:
    return sorted(
        repr((sorted(declared(r).items()), r[DELETED], r[CONFIG] if backfill else "")) for r in rows
    )


def _values(row: Row, columns: Sequence[str]) -> Key:
    return tuple(row[c] for c in columns)


def _place(row: Row) -> Key:
    position = row[POSITION]
    return (position["name"], position["part"], position["place"])


def _facts_schema(dataset: FactDataset) -> pa.Schema:
    columns = [(c.name, _TYPES[c.type.stored]) for c in dataset.columns if c.type is not None]
    return pa.schema([*columns, _POSITION, _INGESTED, *_KEYED])


def _facts_of(node: Node) -> FactDataset:
    match node.definition:
        case Quarantine(facts=facts) | Snapshot(facts=facts):
            return facts
        case FactDataset() as facts:
            return facts
        case other:
            raise TypeError(f"{node.name} is a {type(other).__name__}, not facts")


def _job_of(node: Node) -> Job:
    assert isinstance(node.definition, Job)
    return node.definition


def compute_names(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    percents = [r["percent"] for r in inputs["rate"] if r["name"] == "*"]
    counts = Counter((r["name"], r["colour"]) for r in inputs["item"])
    factor = int(str(config["factor"]))
    return [
        {"name": n, "colour": c, "worth": k * max(percents) * factor}
        for (n, c), k in counts.items()
        if percents
    ]


def compute_colours(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    totals: Counter[str | None] = Counter()
    for row in inputs["names"]:
        totals[row["colour"]] += row["worth"]
    return [{"colour": colour, "worth": worth} for colour, worth in totals.items()]


def compute_told(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    return [{"name": r["name"], "price": r["price"]} for r in inputs["item"]]


def compute_stretches(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    factor = int(str(config["factor"]))
    return [
        {"number": r["number"], "hash": r["hash"], "weight": r["weight"] * factor} for r in inputs["main"]
    ]


JOBS: dict[str, Callable[[Mapping[str, Sequence[Row]], Mapping[str, object]], list[Row]]] = {
    "names": compute_names,
    "colours": compute_colours,
    "told": compute_told,
    "stretches": compute_stretches,
}
RESULTS = {
    "names": ("name", "colour", "worth"),
    "colours": ("colour", "worth"),
    "told": ("name", "price"),
    "stretches": ("number", "hash", "weight"),
}
