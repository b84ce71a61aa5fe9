"""Bring a database to the newest shape, once, however many processes open it together."""

import threading
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


def migrate(catalog: Catalog) -> None:
    """Run the missing migrations in one transaction. Who waited for another process finds nothing left to do."""
    with _one_at_a_time, catalog.writing() as connection:
        if not catalog.on_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        if find_revision(connection) != HEAD:
            command.upgrade(migration_config(connection), HEAD)


def migration_config(connection: Connection) -> Config:
    """Alembic's settings, without a file: where the migrations are and which connection they use."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
