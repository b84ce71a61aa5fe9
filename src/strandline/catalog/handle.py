"""The handle on an open catalog: its transactions, and the translation of database errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DBAPIError, IntegrityError, TimeoutError

from strandline.model.errors import OutsideError


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """An open catalog. Threads may share it. Each function of this package is one transaction."""

    engine: Engine

    @property
    def shown(self) -> str:
        """The address without its password, which may also be in its query."""
        return self.engine.url.set(query={}).render_as_string(hide_password=True)

    @property
    def on_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads: the block sees one consistent state of the catalog."""
        with explained(self), self.engine.connect() as connection:
            if not self.on_sqlite:
                # Every statement of the block must see the same snapshot. On SQLite a reading transaction
                # does that by itself.
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: all of the block takes effect, or nothing."""
        with explained(self), self.engine.connect() as connection:
            connection.execution_options(strandline_writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def explained(catalog: Catalog) -> Iterator[None]:
    """Turn the error of a database that does not answer into one that says what an operator can do."""
    try:
        yield
    except IntegrityError:
        raise  # a mistake in this package or its caller, not in the database
    except (DBAPIError, TimeoutError, OSError) as error:
        raise unreachable(catalog, error) from error


def unreachable(catalog: Catalog, error: Exception) -> OutsideError:
    """The error for a catalog that cannot be used, with the remedy for the most likely cause."""
    text = str(error.orig if isinstance(error, DBAPIError) and error.orig else error).strip()
    if not catalog.on_sqlite:
        remedy = "Check that Postgres runs, and the host, database, user and password in `settings.catalog`."
    elif "locked" in text or "busy" in text:
        remedy = "Another process holds the catalog's lock; end it or wait for it, then run again."
    elif "not a database" in text or "malformed" in text:
        remedy = (
            "The file is damaged or is not a catalog."
            " Run `strandline rebuild-catalog`: it moves the file aside."
        )
    else:
        remedy = "Check that the folder exists, is writable, and has space left."
    return OutsideError(
        f"Catalog {catalog.shown} can't be used: {text}.", remedy=remedy, slug="catalog-unreachable"
    )


def insert_into(dialect: str, table: Table) -> Any:
    """An INSERT that supports `on_conflict_...`. The two databases have the same one under two names."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgres_insert

    return postgres_insert(table)
