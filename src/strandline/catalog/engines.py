"""How each database is connected to, with the reason for each setting."""

import time
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

BUSY_SECONDS = 30.0
"""How long a writer waits for SQLite's only write lock, unless the address contains `?timeout=`."""


def in_memory(address: URL) -> bool:
    return address.database in (None, "", ":memory:")


def sqlite_engine(address: URL) -> Engine:
    busy_seconds = float(str(address.query.get("timeout", BUSY_SECONDS)))
    address = address.update_query_dict({"timeout": str(busy_seconds)})
    if in_memory(address):
        # An in-memory database lives in one connection, so threads take turns on it.
        turns = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": busy_seconds}
        engine = create_engine(address, connect_args={"check_same_thread": False}, **turns)
    else:
        engine = create_engine(address, pool_size=5, max_overflow=50)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver starts no transaction; `begin` below does
        if not in_memory(address):
            _use_wal(connection, busy_seconds)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later cannot wait for the write lock, so a writer takes it
        # at once.
        writes = connection.get_execution_options().get("strandline_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def postgres_engine(address: URL) -> Engine:
    return create_engine(
        address,
        isolation_level="READ COMMITTED",  # enough for compare-and-set, whatever the server's default is
        pool_size=5,
        max_overflow=50,
        pool_pre_ping=True,  # a task does not fail because the server was restarted
        connect_args={"connect_timeout": 10, "application_name": "strandline"},
    )


def _use_wal(connection: Any, busy_seconds: float) -> None:
    """Switch to write-ahead logging. SQLite does not wait for the lock this needs, so we do.

    The mode stays with the file, so only the first connection changes it.
    """
    give_up = time.monotonic() + busy_seconds
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except connection.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)
