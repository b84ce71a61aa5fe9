"""Bring a database to the newest shape, once, however many processes open it together."""

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
"""Postgres lock that migrations of a database take turns on; any number that nobody else uses."""

_one_at_a_time = threading.Lock()  # Alembic keeps the migration under way in a global


def migrate(catalog: Catalog, reach: Callable[[str, str], None]) -> None:
    """Run the missing migrations in one transaction. Who waited for another process finds nothing left to do.

    `reach` is told before and after, inside the transaction: whoever dies there has changed nothing.
    """
    with _one_at_a_time, catalog.writing() as connection:
        take_turn(catalog, connection)
        if find_revision(connection) != HEAD:
            reach("before-migrate", "catalog")
            upgrade(connection)
            reach("after-migrate", "catalog")


def take_turn(catalog: Catalog, connection: Connection) -> None:
    """Keep other processes from migrating until the transaction ends. On SQLite whoever writes is alone."""
    if not catalog.on_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})


def upgrade(connection: Connection) -> None:
    """Bring the database of a connection to the newest shape, inside its transaction."""
    command.upgrade(migration_config(connection), HEAD)


def migration_config(connection: Connection) -> Config:
    """Alembic's settings, without a file: where the migrations are and which connection they use."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
