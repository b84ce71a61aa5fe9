"""A catalog built aside, and how it takes the place of the one that is used: in one step, so that whoever dies leaves the old one.

Only what the tables tell is replaced (L6). Leases, runs, tasks and the audit log stay as they are, where there is something to stay.
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
"""What the tables tell, in the order it can be inserted."""
_BATCH = 500
_SIDECARS = ("-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """An empty catalog beside the one that is used."""

    catalog: Catalog
    path: Path | None
    """Its file, where the one that is used is a file: it can become it."""


@contextmanager
def opened_aside(url: str) -> Iterator[Aside]:
    """Open one to be filled. What an earlier attempt left is removed, and so is this one unless it was swapped in."""
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
    """Put it in the place of the one at `url`; where a damaged file was moved to, if there was one.

    `break_leases`: whoever holds a lease is known to be gone. Otherwise a lease that has not run out refuses the swap.
    """
    file = find_file(url)
    if file is None or aside.path is None or not _is_unusable(url, file):
        _replace_content(url, aside.catalog, reach, break_leases)
        return None
    with aside.catalog.writing() as connection:
        connection.execute(delete(leases))  # nobody knows who wrote last: the next holder of each must fence
    aside.catalog.close()  # the last connection folds the write-ahead log into the file
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
    """A catalog that lacks tables is made anew; an empty database, or one of an earlier shape, is migrated."""
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
    """Whoever holds a lease is about to record what it did. On Postgres no lease is taken until this ends; SQLite has one writer."""
    if not target.on_sqlite:
        connection.execute(text("LOCK TABLE leases IN SHARE ROW EXCLUSIVE MODE"))
    held = select(leases.c.dataset, leases.c.holder).where(
        leases.c.state == HELD, leases.c.expires_at > database_now()
    )
    found = None if break_leases else connection.execute(held).first()
    if found:
        raise ConflictError(
            f"`{found.dataset}` is being written by {found.holder}, so the catalog can't be replaced now.",
            remedy="Wait for it to end; if it was killed, the lease runs out by itself.",
            slug="lease-held",
        )


def _is_unusable(url: str, file: Path) -> bool:
    """Whether the file is missing or damaged. One that is locked, or can't be opened, is an error of its own."""
    if not file.exists() or not file.stat().st_size:
        return True
    catalog = connect_catalog(url)
    try:
        return bool(find_damage(catalog))
    finally:
        catalog.close()


def _keep_damaged(file: Path) -> Path:
    """Lay a damaged catalog aside with its write-ahead log, which must never be taken for the new one's."""
    kept = file.with_name(f"{file.name}.damaged")
    _remove(kept)
    for ending in _SIDECARS:
        sidecar = file.with_name(file.name + ending)
        if sidecar.exists():
            os.replace(sidecar, kept.with_name(kept.name + ending))
    os.replace(file, kept)
    return kept


def _remove(path: Path) -> None:
    for ending in ("", *_SIDECARS):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def find_file(url: str) -> Path | None:
    """The file of a catalog on SQLite, whether it is there or not."""
    catalog = connect_catalog(url)
    address = catalog.engine.url
    catalog.close()
    return Path(str(address.database)) if catalog.on_sqlite and not in_memory(address) else None
