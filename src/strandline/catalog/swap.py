"""A catalog that is built aside and then replaces the one in use, in one step.

A process that dies leaves the old one in place. Only what the tables contain is replaced (L6): leases, runs,
tasks and the audit log are kept if they can be read.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, insert, inspect, select, text

from strandline.model.errors import ConflictError

from .engines import in_memory
from .handle import Catalog
from .open import connect_catalog, open_catalog
from .probe import find_damage
from .revision import HEAD, find_revision
from .sqltypes import database_now
from .tables import (
    HELD,
    data_invalidations,
    dataset_cursors,
    datasets,
    invalidation_jobs,
    leases,
    metadata,
    partition_versions,
)

REBUILT = (datasets, dataset_cursors, partition_versions, data_invalidations, invalidation_jobs)
"""What can be read from the tables, in the order of insertion."""
_BATCH = 500
_SIDECARS = ("-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """An empty catalog beside the one in use."""

    catalog: Catalog
    path: Path | None
    """Its file, if the catalog in use is a file that it can replace."""


@contextmanager
def opened_aside(url: str) -> Iterator[Aside]:
    """Open one to be filled.

    It is removed at the end unless it was swapped in, as is what an earlier attempt left.
    """
    file = find_file(url)
    path = file.with_name(f"{file.name}.rebuilt") if file else None
    if path:
        _remove(path)
    catalog = open_catalog(f"sqlite:///{path}" if path else "sqlite://")
    try:
        yield Aside(catalog=catalog, path=path)
    finally:
        catalog.close()
        if path:
            _remove(path)


def swap(url: str, aside: Aside, reach: Callable[[str, str], None], *, break_leases: bool) -> Path | None:
    """Replace the catalog at `url`. Returns where a damaged file was moved to, if there was one.

    `break_leases`: every holder of a lease is known to be gone. Otherwise a lease that has not run out
    refuses the swap.
    """
    file = find_file(url)
    if file is None or aside.path is None or not _is_unusable(url, file):
        _replace_content(url, aside.catalog, reach, break_leases)
        return None
    with aside.catalog.writing() as connection:
        connection.execute(delete(leases))  # the last writers are unknown: each next holder must fence
    aside.catalog.close()  # the last connection merges the write-ahead log into the file
    reach("before-swap", "catalog")
    damaged = _keep_damaged(file) if file.exists() else None
    os.replace(aside.path, file)
    reach("after-swap", "catalog")
    return damaged


def _replace_content(
    url: str, source: Catalog, reach: Callable[[str, str], None], break_leases: bool
) -> None:
    target = connect_catalog(url)
    try:
        with target.writing() as connection:
            _bring_into_shape(target, connection)
            _refuse_held(target, connection, break_leases)
            for table in reversed(REBUILT):
                connection.execute(delete(table))
            _copy(source, connection)
            reach("before-swap", "catalog")
        reach("after-swap", "catalog")
    finally:
        target.close()


def _copy(source: Catalog, connection: Connection) -> None:
    with source.reading() as reading:
        for table in REBUILT:
            rows = [dict(row) for row in reading.execute(select(table)).mappings()]
            for start in range(0, len(rows), _BATCH):
                connection.execute(insert(table), rows[start : start + _BATCH])


def _bring_into_shape(target: Catalog, connection: Connection) -> None:
    """Recreate a catalog that lacks tables; migrate an empty database or one of an earlier schema."""
    from .migrate import take_turn, upgrade

    take_turn(target, connection)
    revision = find_revision(connection)
    if revision == HEAD and not set(metadata.tables) <= set(inspect(connection).get_table_names()):
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
        revision = None
    if revision != HEAD:
        upgrade(connection)


def _refuse_held(target: Catalog, connection: Connection, break_leases: bool) -> None:
    """Refuse while somebody holds a lease and is about to record what it did.

    On Postgres no lease is taken until this ends. SQLite has one writer anyway.
    """
    if not target.on_sqlite:
        connection.execute(text("LOCK TABLE leases IN SHARE ROW EXCLUSIVE MODE"))
    held = select(leases.c.dataset, leases.c.holder).where(
        leases.c.state == HELD, leases.c.expires_at > database_now()
    )
    holder_row = None if break_leases else connection.execute(held).first()
    if holder_row:
        raise ConflictError(
            f"`{holder_row.dataset}` is being written by {holder_row.holder},"
            " so the catalog can't be replaced now.",
            remedy="Wait for it to end; if it was killed, the lease runs out by itself.",
            slug="lease-held",
        )


def _is_unusable(url: str, file: Path) -> bool:
    """Whether the file is missing or damaged. One that is locked or cannot be opened raises."""
    if not file.exists() or not file.stat().st_size:
        return True
    catalog = connect_catalog(url)
    try:
        return bool(find_damage(catalog))
    finally:
        catalog.close()


def _keep_damaged(file: Path) -> Path:
    """Move a damaged catalog aside with its write-ahead log, which must never be taken for the new one's."""
    damaged = file.with_name(f"{file.name}.damaged")
    _remove(damaged)
    for ending in _SIDECARS:
        sidecar = file.with_name(file.name + ending)
        if sidecar.exists():
            os.replace(sidecar, damaged.with_name(damaged.name + ending))
    os.replace(file, damaged)
    return damaged


def _remove(path: Path) -> None:
    for ending in ("", *_SIDECARS):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def find_file(url: str) -> Path | None:
    """The file of a SQLite catalog, whether it exists or not."""
    catalog = connect_catalog(url)
    address = catalog.engine.url
    catalog.close()
    return Path(str(address.database)) if catalog.on_sqlite and not in_memory(address) else None
