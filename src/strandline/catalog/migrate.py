"""Migrate a database to the newest schema, once, however many processes open it together."""

import threading
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from .handle import Catalog
from .revision import HEAD, find_revision

FOLDER = Path(__file__).parent / "migrations"

ADVISORY_LOCK = 7_268_412_905
"""Postgres lock under which migrations of a database take turns. Any number that nobody else uses."""

_one_at_a_time = threading.Lock()  # Alembic keeps the running migration in a global


def migrate(catalog: Catalog, reach: Callable[[str, str], None]) -> None:
    """Run the missing migrations in one transaction.

    A process that waited for another finds nothing left to do.

    `reach` is called before and after, inside the transaction: a process that dies there has changed nothing.
    """
    with _one_at_a_time, catalog.writing() as connection:
        take_turn(catalog, connection)
        if find_revision(connection) != HEAD:
            reach("before-migrate", "catalog")
            upgrade(connection)
            reach("after-migrate", "catalog")


def take_turn(catalog: Catalog, connection: Connection) -> None:
    """Keep other processes from migrating until the transaction ends. On SQLite a writer is alone anyway."""
    if not catalog.on_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})


def upgrade(connection: Connection) -> None:
    """Migrate the database of a connection to the newest schema, inside its transaction."""
    command.upgrade(migration_config(connection), HEAD)


def migration_config(connection: Connection) -> Config:
    """Alembic's settings, without a file: where the migrations are and which connection they use."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
