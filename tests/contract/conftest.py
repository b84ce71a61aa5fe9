"""The catalogs that the contract is tested on."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.catalog import Catalog, open_catalog
from strandline.catalog.open import connect_catalog
from tests.contract.builders import emptied
from tests.contract.postgres import Postgres, find_binaries, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no Postgres server under /usr/lib/postgresql (Debian: apt install postgresql)")
    with running_postgres(binaries) as server:
        yield server


@pytest.fixture(params=["sqlite-file", "postgres"])
def shared_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database that several processes can open."""
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        return server.new_database()
    return f"sqlite:///{tmp_path}/state/catalog.db"


@pytest.fixture(scope="session")
def postgres_catalog(postgres: Postgres) -> Iterator[Catalog]:
    """One database for all tests: creating one takes longer than a test. Each test empties it."""
    catalog = open_catalog(postgres.new_database())
    yield catalog
    catalog.close()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty catalog in a file that nobody has open. To migrate one takes longer than a test."""
    file = tmp_path_factory.mktemp("migrated") / "catalog.db"
    open_catalog(f"sqlite:///{file}").close()
    return file


@pytest.fixture(params=["sqlite-file", "sqlite-memory", "postgres"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> Iterator[Catalog]:
    """An empty catalog."""
    if request.param == "postgres":
        yield emptied(request.getfixturevalue("postgres_catalog"))
        return
    if request.param == "sqlite-memory":
        opened = connect_catalog("sqlite://")
        with closing(sqlite3.connect(migrated_file)) as source, opened.engine.connect() as connection:
            source.backup(connection.connection.driver_connection)  # type: ignore[arg-type]
    else:
        shutil.copy(migrated_file, tmp_path / "catalog.db")
        opened = open_catalog(f"sqlite:///{tmp_path}/catalog.db")
    yield opened
    opened.close()
