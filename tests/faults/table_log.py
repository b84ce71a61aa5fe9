"""A table log with Delta's rules in plain Python: versions, put-if-absent, tokens, conflicts.

It writes real Delta tables. `test_table_log_contract.py` compares it with Delta through Spark. Replaced rows
rewrite their files; there are no deletion vectors.
"""

import functools
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema

from strandline.lake.location import Lake
from strandline.lake.statistics import KEPT_OF, can_be_ranged, spell_columns
from strandline.lake.writes import OWNED_TABLE, RECEIVED_TABLE, Superseding, Ticket
from strandline.model.columns import DELETED, HEAD, KEY, ROLE, Role
from strandline.model.errors import ConflictError
from strandline.model.hashing import digest
from strandline.model.timeline import DATE

Row = dict[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows with the types of their columns."""

    schema: pa.Schema
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table at a version; version -1 before the first commit."""

    folder: Path
    version: int = -1
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    committed_at: int = 0

    @property
    def schema(self) -> pa.Schema:
        text = self.metadata.get("schemaString")
        return pa.schema(Schema.from_json(text).to_arrow()) if text else pa.schema([])

    def rows(self) -> list[Row]:
        """Every row, deleted ones included; a column added after a row was written is None there."""
        names = _names(self.metadata["schemaString"]) if self.metadata else ()
        return [
            {name: row.get(name) for name in names}
            for path in sorted(self.files)
            for row in _read_rows(str(self.folder / path))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a writer wants to do to the version it read."""

    added: Rows | None = None
    removed: tuple[str, ...] = ()
    read_all: bool = False
    """It rests on what was in the table, so whoever added or removed rows meanwhile is in its way."""
    replaces_schema: bool = False
    data_change: bool = True
    operation: str = "WRITE"
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that the table gets."""
    sorted_by: tuple[str, ...] = ()


def between(dataset: str, token: int) -> None:
    """Reached after a writer has read the table and before it commits.

    Tests put another writer, or the end of the process, here.
    """


def append(
    rows: Rows,
    lake: Lake,
    ticket: Ticket,
    *,
    received: bool = False,
    first: bool = False,
    indexed: Sequence[str] = (),
) -> None:
    def added(now: Snapshot) -> Change:
        if first and now.version >= 0:
            raise _raced(ticket)
        return Change(added=rows, properties=_statistics(rows, indexed) if first else {})

    _commit(lake, ticket, added, RECEIVED_TABLE if received else OWNED_TABLE)


def replace_keys(rows: Rows, lake: Lake, ticket: Ticket) -> None:
    keys = {row[KEY] for row in rows.rows}
    _commit(lake, ticket, lambda now: _replace(now, rows, lambda row: row[KEY] in keys), OWNED_TABLE)


def replace_superseded(rows: Rows, lake: Lake, ticket: Ticket, superseding: Superseding) -> None:
    """Add rows, and remove each published row that one of them takes the place of (ADR 14)."""
    columns = (*superseding.key, DATE)
    named = {
        (row[HEAD]["replaces"], *(row.get(c) for c in columns))
        for row in rows.rows
        if row[HEAD] is not None and row[HEAD]["replaces"] is not None
    }
    roles = {Role.ROW: bool(superseding.dates), Role.HEAD: superseding.heads, Role.EPOCH: False}

    def leaves(row: Row) -> bool:
        if not roles[Role(row[ROLE])] or (row[KEY], *(row[c] for c in columns)) not in named:
            return False
        return row[DATE] is None or any(low <= row[DATE] <= high for low, high in superseding.dates)

    _commit(lake, ticket, lambda now: _replace(now, rows, leaves), OWNED_TABLE)


def replace_where(rows: Rows, lake: Lake, ticket: Ticket, matches: Callable[[Row], bool]) -> None:
    _commit(lake, ticket, lambda now: _replace(now, rows, matches), OWNED_TABLE)


def overwrite(rows: Rows, lake: Lake, ticket: Ticket, *, indexed: Sequence[str] = ()) -> None:
    def everything(now: Snapshot) -> Change:
        return Change(
            added=rows,
            removed=tuple(now.files),
            read_all=True,
            replaces_schema=True,
            properties=_statistics(rows, indexed),
        )

    _commit(lake, ticket, everything, OWNED_TABLE)


def _statistics(rows: Rows, indexed: Sequence[str]) -> Mapping[str, str]:
    """The property that says of which columns a table keeps statistics."""
    columns = [f.name for f in rows.schema if f.name in indexed and can_be_ranged(str(f.type))]
    return {KEPT_OF: spell_columns(columns)} if columns else {}


def commit_nothing(lake: Lake, ticket: Ticket) -> None:
    _commit(lake, ticket, lambda _: Change(), OWNED_TABLE)


def purge(lake: Lake, ticket: Ticket) -> None:
    _commit(lake, ticket, lambda now: _replace(now, None, lambda row: bool(row[DELETED])), OWNED_TABLE)


def compact(lake: Lake, dataset: str, metadata: str = "", sorted_by: Sequence[str] = ()) -> None:
    """All rows in one file, by a commit that changes no data. Delta gives such a commit no token."""

    def together(now: Snapshot) -> Change:
        rows = Rows(schema=now.schema, rows=now.rows())
        return Change(
            added=rows,
            removed=tuple(now.files),
            read_all=True,
            data_change=False,
            operation="OPTIMIZE",
            sorted_by=tuple(sorted_by),
        )

    _commit(lake, Ticket(dataset=dataset, token=0, metadata=metadata), together, OWNED_TABLE)


def keep_statistics(lake: Lake, dataset: str, columns: Sequence[str], metadata: str) -> None:
    """The property alone. Files written here never have statistics, so they may have any row."""
    change = Change(operation="SET TBLPROPERTIES", properties={KEPT_OF: spell_columns(columns)})

    def of_a_table(now: Snapshot) -> Change:
        if now.version < 0:
            raise FileNotFoundError(f"{dataset} is not a Delta table.")
        return change

    _commit(lake, Ticket(dataset=dataset, token=0, metadata=metadata), of_a_table, OWNED_TABLE)


def read_snapshot(uri: str, version: int | None = None) -> Snapshot:
    """The table at a version, the newest for None."""
    folder = Path(uri)
    metadata: Mapping[str, Any] = {}
    files: dict[str, Mapping[str, Any]] = {}
    tokens: dict[str, int] = {}
    newest, committed_at = -1, 0
    for number, path in _commits(folder):
        if version is not None and number > version:
            break
        newest = number
        for action in _actions(path):
            if add := action.get("add"):
                files[add["path"]] = add
            elif remove := action.get("remove"):
                files.pop(remove["path"], None)
            elif txn := action.get("txn"):
                tokens[txn["appId"]] = txn["version"]
            elif found := action.get("metaData"):
                metadata = found
            elif info := action.get("commitInfo"):
                committed_at = info["inCommitTimestamp"]
    return Snapshot(
        folder=folder,
        version=newest,
        metadata=metadata,
        files=files,
        tokens=tokens,
        committed_at=committed_at,
    )


def put_if_absent(path: Path, text: str) -> None:
    """Write a file that must not be there yet: all of it or FileExistsError."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.tmp")
    aside.write_text(text)
    try:
        os.link(aside, path)
    finally:
        aside.unlink()


def _commit(
    lake: Lake, ticket: Ticket, change: Callable[[Snapshot], Change], properties: Mapping[str, str]
) -> None:
    now = read_snapshot(lake.table(ticket.dataset))
    if is_old(ticket, now):
        return
    wanted = change(now)
    actions = _make_actions(now, wanted, ticket, properties)
    between(ticket.dataset, ticket.token)
    log = now.folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version, at_least = now.version + 1, now.committed_at + 1
    while True:
        info = _commit_info(wanted, ticket, at_least)
        try:
            put_if_absent(
                log / f"{version:020}.json", "".join(json.dumps(a) + "\n" for a in (info, *actions))
            )
        except FileExistsError:
            at_least = _pass(log / f"{version:020}.json", wanted, ticket) + 1
            version += 1
        else:
            return


def is_old(ticket: Ticket, now: Snapshot) -> bool:
    """Delta's rule: a transaction that the table has seen is skipped silently.

    The same holds if the table has seen a later one of its application.
    """
    return bool(ticket.token) and ticket.token <= now.tokens.get(ticket.dataset, 0)


def _pass(winner: Path, wanted: Change, ticket: Ticket) -> int:
    """Whether a commit may come after one that it did not see; then when that one was made."""
    committed_at = 0
    for action in _actions(winner):
        if info := action.get("commitInfo"):
            committed_at = info["inCommitTimestamp"]
        same_application = bool(ticket.token) and action.get("txn", {}).get("appId") == ticket.dataset
        added = action.get("add", {}).get("dataChange", False)
        if same_application or "metaData" in action or (wanted.read_all and (added or "remove" in action)):
            raise _raced(ticket)
    return committed_at


def _raced(ticket: Ticket) -> ConflictError:
    return ConflictError(
        f"Another writer committed to `{ticket.dataset}`.",
        remedy="It is tried again; if that fails too, run again.",
        slug="conflict",
    )


def _replace(now: Snapshot, rows: Rows | None, matches: Callable[[Row], bool]) -> Change:
    """Rewrite the files that hold a row to be replaced; without rows of its own it clears them."""
    touched = [path for path in now.files if any(matches(row) for row in _read_rows(str(now.folder / path)))]
    kept = [row for path in touched for row in _read_rows(str(now.folder / path)) if not matches(row)]
    schema = _merge(now.schema, rows.schema) if rows else now.schema
    added = Rows(schema=schema, rows=[*kept, *(rows.rows if rows else ())])
    return Change(added=added, removed=tuple(touched), read_all=True)


def _make_actions(
    now: Snapshot, wanted: Change, ticket: Ticket, properties: Mapping[str, str]
) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    if ticket.token:
        actions.append({"txn": {"appId": ticket.dataset, "version": ticket.token, "lastUpdated": _millis()}})
    schema = now.schema
    if wanted.added is not None:
        schema = wanted.added.schema if wanted.replaces_schema else _merge(now.schema, wanted.added.schema)
    if now.version < 0:
        actions.append({"protocol": _PROTOCOL})
    if now.version < 0 or not schema.equals(now.schema) or wanted.properties:
        described = _describe(now, schema, properties)
        described["configuration"] |= wanted.properties
        actions.append({"metaData": described})
    removed = {"deletionTimestamp": _millis(), "dataChange": wanted.data_change}
    actions += [{"remove": {"path": path, **removed}} for path in wanted.removed]
    if wanted.added is not None and wanted.added.rows:
        actions.append(
            {"add": _write_file(now.folder, schema, wanted.added.rows, data_change=wanted.data_change)}
        )
    return actions


def _write_file(folder: Path, schema: pa.Schema, rows: Sequence[Row], *, data_change: bool) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"part-{os.getpid()}-{next(_numbers):06}.parquet"
    pq.write_table(
        pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in rows], schema=schema),
        folder / name,
    )
    return {
        "path": name,
        "partitionValues": {},
        "size": (folder / name).stat().st_size,
        "modificationTime": _millis(),
        "dataChange": data_change,
        "stats": json.dumps({"numRecords": len(rows)}),
    }


_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "appendOnly", "invariants", "changeDataFeed", "inCommitTimestamp"],
}


def _describe(now: Snapshot, schema: pa.Schema, properties: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": now.metadata.get("id") or _make_id(now.folder),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(schema).to_json(),
        "partitionColumns": [],
        "configuration": dict(now.metadata.get("configuration", properties)),
        "createdTime": now.metadata.get("createdTime", _millis()),
    }


def _make_id(folder: Path) -> str:
    text = digest([str(folder), os.getpid(), next(_numbers)]).ljust(32, "0")
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def _commit_info(wanted: Change, ticket: Ticket, at_least: int) -> dict[str, Any]:
    at = max(_millis(), at_least)
    info = {
        "inCommitTimestamp": at,
        "timestamp": at,
        "operation": wanted.operation,
        "engineInfo": "plain Python",
        "operationParameters": {"zOrderBy": json.dumps(wanted.sorted_by)},
    }
    return {"commitInfo": info | ({"userMetadata": ticket.metadata} if ticket.metadata else {})}


def _merge(old: pa.Schema, new: pa.Schema) -> pa.Schema:
    return pa.schema([*old, *(f for f in new if f.name not in old.names)])


def _commits(folder: Path) -> Iterable[tuple[int, Path]]:
    log = folder / "_delta_log"
    return [(int(path.stem), path) for path in sorted(log.glob("0*.json"))]


def _actions(path: Path) -> tuple[dict[str, Any], ...]:
    status = path.stat()
    return _parse(str(path), status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=20_000)
def _parse(path: str, _inode: int, _modified_ns: int) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in Path(path).read_text().splitlines())


def _read_rows(path: str) -> tuple[Row, ...]:
    """The rows of a file that still exists. File names are never reused, so each file is read once."""
    Path(path).stat()
    return _read_once(path)


@functools.lru_cache(maxsize=20_000)
def _read_once(path: str) -> tuple[Row, ...]:
    return tuple(pq.ParquetFile(path).read().to_pylist())


@functools.lru_cache(maxsize=1_000)
def _names(schema: str) -> tuple[str, ...]:
    return tuple(f["name"] for f in json.loads(schema)["fields"])


def _millis() -> int:
    return time.time_ns() // 1_000_000
