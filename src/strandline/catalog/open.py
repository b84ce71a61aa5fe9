"""Open a catalog: connect, migrate it to the newest schema, return the handle."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from strandline.model.errors import ProjectError, one_mistake

from .engines import in_memory, postgres_engine, sqlite_engine
from .handle import Catalog, explained
from .revision import HEAD, find_revision


def open_catalog(url: str, reach: Callable[[str, str], None] = lambda _point, _what: None) -> Catalog:
    """Open the catalog at a SQLAlchemy address, creating or migrating it where needed.

    `reach` is called at points where a process may die.
    """
    catalog = connect_catalog(url)
    address = catalog.engine.url
    try:
        with explained(catalog):
            if catalog.on_sqlite and not in_memory(address):
                Path(str(address.database)).parent.mkdir(parents=True, exist_ok=True)
            _bring_up_to_date(catalog, reach)
    except BaseException:
        catalog.close()
        raise
    return catalog


def connect_catalog(url: str) -> Catalog:
    """Only the handle: nothing is connected, created or migrated yet."""
    address = _parse(url)
    on_sqlite = address.get_backend_name() == "sqlite"
    return Catalog(engine=sqlite_engine(address) if on_sqlite else postgres_engine(address))


def _bring_up_to_date(catalog: Catalog, reach: Callable[[str, str], None]) -> None:
    with catalog.reading() as connection:
        revision = find_revision(connection)
    if revision != HEAD:
        from .migrate import migrate  # loads Alembic, which takes longer than everything else

        migrate(catalog, reach)


def _parse(url: str) -> URL:
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise _bad_address(
            "`settings.catalog` is not a database address."
        ) from None  # the text may contain a password
    if address.drivername == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    if address.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise _bad_address(
            f"`settings.catalog` names the database `{address.drivername}`, which can't hold a catalog."
        )
    return address


def _bad_address(what: str) -> ProjectError:
    return one_mistake(
        "catalog-address",
        what,
        "Write `sqlite:///<path>` or `postgresql+psycopg://<user>:<password>@<host>/<database>`.",
    )
