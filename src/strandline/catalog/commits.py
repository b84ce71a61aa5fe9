"""Record what the holder of a lease did (step 6 of the commit protocol).

One transaction checks the token and moves everything.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from strandline.model.commits import CommitRecord, Operation
from strandline.model.files import FileRead
from strandline.model.kind import NodeKind
from strandline.model.leases import Lease
from strandline.model.metadata import file_to_dict
from strandline.model.plan import Cursor
from strandline.model.traits import Recount

from .handle import Catalog, insert_into
from .invalidations import acknowledge, put_invalidations
from .leases import check_token
from .partitions import FORGET_PARTITIONS, put_partitions
from .sqltypes import database_now
from .tables import FILE_CURSOR, TABLE_CURSOR, dataset_cursors, datasets, no_table

_DATASET = select(datasets).where(datasets.c.dataset == bindparam("one"))
_FORGET_CURSORS = delete(dataset_cursors).where(dataset_cursors.c.dataset == bindparam("one"))


def record_commit(
    catalog: Catalog,
    lease: Lease,
    records: tuple[CommitRecord, ...],
    *,
    kind: NodeKind,
    recount: Recount,
    location: str,
    row_count: int,
    bytes_: int,
    release: bool,
    readers: Sequence[str] = (),
) -> None:
    """Record those of our commits that are in the table's log.

    A commit that is already recorded is skipped, so that a repetition changes nothing. `row_count` and
    `bytes_` are those of the table after the last commit. `readers` are the jobs that must process each
    invalidation among them.
    """
    with catalog.writing() as connection:
        check_token(connection, lease, release=release)
        state = _read_dataset(connection, lease.dataset)
        cursors: dict[str, Cursor] = {}
        files: dict[str, FileRead] = {}
        for record in sorted(records, key=lambda record: record.version):
            if record.table_id == state["table_id"] and record.version <= state["table_version"]:
                continue
            if state["table_id"] not in ("", record.table_id):
                # The table was recreated: cursors in the old table say nothing about the new one.
                connection.execute(_FORGET_CURSORS, {"one": lease.dataset})
                connection.execute(FORGET_PARTITIONS, {"one": lease.dataset})
                state = no_table()
            state = {
                **_after(state, record, recount),
                "location": location,
                "row_count": row_count,
                "bytes": bytes_,
            }
            cursors.update(record.metadata.inputs)
            files.update({file.path: file for file in record.metadata.files})
            _put_dataset(connection, lease.dataset, kind, state)
            put_partitions(connection, record, location)
            put_invalidations(connection, record, readers)
        _put_cursors(connection, lease.dataset, cursors, files)


def record_unchanged(
    catalog: Catalog,
    lease: Lease,
    *,
    kind: NodeKind,
    cursors: Mapping[str, Cursor],
    files: tuple[FileRead, ...],
    as_of: str,
    table_version: int | None,
    release: bool,
    waiting: tuple[str, ...] = (),
) -> None:
    """Record that inputs were read and the output did not change: cursors move in the catalog alone."""
    with catalog.writing() as connection:
        check_token(connection, lease, release=release)
        state = {**_read_dataset(connection, lease.dataset), "as_of": as_of, "waiting": list(waiting)}
        if table_version is not None and state["table_id"]:
            state["table_version"] = max(state["table_version"], table_version)
        _put_dataset(connection, lease.dataset, kind, state)
        _put_cursors(connection, lease.dataset, cursors, {file.path: file for file in files})


def _after(state: Mapping[str, Any], record: CommitRecord, recount: Recount) -> dict[str, Any]:
    """The state of the dataset once the commit is recorded."""
    metadata = record.metadata
    after = {**state, "table_id": record.table_id, "table_version": record.version}
    if metadata.operation.is_bare:
        return after
    config = {"hash": metadata.config.hash, "parts": dict(metadata.config.parts)}
    if metadata.whole:
        after["configs"] = [config]
    elif config["hash"] not in {written["hash"] for written in state["configs"]}:
        after["configs"] = [*state["configs"], config]
    overwritten = recount is Recount.ON_OVERWRITE and metadata.operation is Operation.OVERWRITE
    before: Mapping[str, int] = (
        {} if metadata.whole and (overwritten or recount is Recount.WHEN_WHOLE) else state["counts"]
    )
    after["counts"] = {
        name: before.get(name, 0) + metadata.counts.get(name, 0)
        for name in before.keys() | metadata.counts.keys()
    }
    after["as_of"] = metadata.as_of
    after["waiting"] = list(metadata.waiting)
    return after


def _read_dataset(connection: Connection, dataset: str) -> dict[str, Any]:
    row = connection.execute(_DATASET, {"one": dataset}).mappings().first()
    state = no_table()
    return {name: row[name] for name in state} if row else state


def _put_dataset(connection: Connection, dataset: str, kind: NodeKind, state: Mapping[str, Any]) -> None:
    connection.execute(
        _upsert_dataset(connection.dialect.name), {**state, "dataset": dataset, "kind": str(kind)}
    )


def _put_cursors(
    connection: Connection, dataset: str, cursors: Mapping[str, Cursor], files: Mapping[str, FileRead]
) -> None:
    nothing = {"dataset": dataset, "cursor_value": None, "table_id": None, "table_version": None}
    rows = [
        {
            **nothing,
            "cursor_column": TABLE_CURSOR,
            "input": name,
            "table_id": cursor.table_id,
            "table_version": cursor.version,
        }
        for name, cursor in cursors.items()
    ] + [
        {**nothing, "cursor_column": FILE_CURSOR, "input": path, "cursor_value": file_to_dict(file)}
        for path, file in files.items()
    ]
    if not rows:
        return
    connection.execute(_upsert_cursor(connection.dialect.name), rows)
    acknowledge(connection, dataset, cursors)


@cache
def _upsert_dataset(dialect: str) -> Any:
    insert = insert_into(dialect, datasets).values(updated_at=database_now())
    moved = {name: insert.excluded[name] for name in (*no_table(), "kind", "updated_at")}
    return insert.on_conflict_do_update(index_elements=["dataset"], set_=moved)


@cache
def _upsert_cursor(dialect: str) -> Any:
    insert = insert_into(dialect, dataset_cursors).values(updated_at=database_now())
    moved = {
        name: insert.excluded[name] for name in ("cursor_value", "table_id", "table_version", "updated_at")
    }
    return insert.on_conflict_do_update(index_elements=["dataset", "cursor_column", "input"], set_=moved)
