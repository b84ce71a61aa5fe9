"""Opening a catalog: creating, migrating, racing, and reporting what is wrong if it fails."""

import multiprocessing
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import Pool
from pathlib import Path
from urllib.parse import quote

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import make_url, text

from strandline.catalog import (
    Catalog,
    acquire_lease,
    claim_deliveries,
    enqueue_deliveries,
    open_catalog,
    read_invalidations,
    read_runs,
    read_view,
    start_run,
)
from strandline.catalog.engines import postgres_engine, sqlite_engine
from strandline.catalog.migrate import migration_config
from strandline.catalog.revision import HEAD
from strandline.catalog.tables import metadata
from strandline.model.commits import WrittenConfig
from strandline.model.deliveries import NewDelivery
from strandline.model.endpoints import Ordering
from strandline.model.errors import OutsideError, ProjectError
from strandline.model.plan import Cursor
from strandline.model.project import Job
from tests.contract import racers
from tests.contract.builders import a_commit, a_file, an_invalidation, record
from tests.contract.postgres import PASSWORD, Postgres

PROCESSES = 4


@pytest.fixture(scope="module")
def processes() -> Iterator[Pool]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["strandline.catalog.migrate", "tests.contract.racers", "sqlalchemy.dialects.postgresql"]
    )
    with context.Pool(PROCESSES) as pool:
        yield pool


def in_processes(processes: Pool, act: Callable[[str, str], object], address: str) -> list[object]:
    return processes.starmap(
        act, [(address, f"process-{number}") for number in range(PROCESSES)], chunksize=1
    )


def test_processes_that_open_a_fresh_catalog_together_all_find_it_migrated_once(
    processes: Pool, shared_address: str
) -> None:
    results = in_processes(processes, racers.open_and_use, shared_address)

    catalog = open_catalog(shared_address)
    assert results == [0] * PROCESSES
    assert len(read_runs(catalog, 10)) == PROCESSES
    with catalog.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).all() == [(HEAD,)]
    catalog.close()


def test_one_of_many_processes_gets_the_lease(processes: Pool, shared_address: str) -> None:
    won = in_processes(processes, racers.acquire, shared_address)

    assert sorted(won, key=str) == [1, None, None, None]


def test_threads_that_open_a_fresh_catalog_together_all_find_it_migrated(shared_address: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        catalogs = list(threads.map(open_catalog, [shared_address] * 6))

    for catalog in catalogs:
        assert not read_view(catalog).nodes
        catalog.close()


def test_threads_may_migrate_different_catalogs_together(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        catalogs = list(
            threads.map(open_catalog, [f"sqlite:///{tmp_path}/{number}.db" for number in range(6)])
        )

    for catalog in catalogs:
        assert not read_view(catalog).nodes
        catalog.close()


def test_opening_waits_for_another_that_is_just_creating_the_file(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE half_way (x)")

    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(open_catalog, f"sqlite:///{tmp_path}/catalog.db")
        time.sleep(0.2)
        waited = not opening.done()
        other.execute("ROLLBACK")
        catalog = opening.result()

    assert waited
    assert not read_view(catalog).nodes
    catalog.close()
    other.close()


def test_what_was_written_is_there_after_opening_again(shared_address: str) -> None:
    catalog = open_catalog(shared_address)
    start_run(catalog, "run-1", "2024-01-01", "person")
    catalog.close()

    catalog = open_catalog(shared_address)

    assert [run.run for run in read_runs(catalog, 1)] == ["run-1"]
    catalog.close()


def test_migrations_lead_to_the_tables_the_code_uses(shared_address: str) -> None:
    catalog = open_catalog(shared_address)

    with catalog.reading() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        newest = ScriptDirectory.from_config(migration_config(connection)).get_current_head()

    assert differences == []
    assert newest == HEAD
    catalog.close()


FIRST_REVISION = (
    """INSERT INTO datasets
       (dataset, kind, table_id, table_version, configs, location, row_count, bytes, as_of, counts,
        updated_at)
       VALUES ('orders', 'job', 'table-1', 7, '[{"hash":"config-a","parts":{"sql":"5a"}}]',
               '/lake/orders', 70, 700,
               '2024-01-01T00:00:00Z', '{"accepted":3}', '2024-01-01T00:00:00.000Z')""",
    """INSERT INTO dataset_cursors
       (dataset, cursor_column, input, cursor_value, table_id, table_version, updated_at)
       VALUES ('orders', 'table', 'sales', NULL, 'sales-table', 9, '2024-01-01T00:00:00.000Z'),
              ('orders', 'file', 'in/a',
               '{"path":"in/a","revision":1,"bytes":30,"rows":3,"digest":"d3","size":30,\
"modified_ns":1700000000123456789}',
               NULL, NULL, '2024-01-01T00:00:00.000Z')""",
    """INSERT INTO leases (dataset, holder, token, state, acquired_at, expires_at)
       VALUES ('orders', 'worker-1', 41, 'released', '2024-01-01T00:00:00.000Z',
               '2024-01-01T00:01:00.000Z')""",
    """INSERT INTO runs (run, as_of, cause, started_at, status)
       VALUES ('run-1', '2024-01-01', 'person', '2024-01-01T00:00:00.000Z', 'done')""",
)


def make_old(shared_address: str) -> Catalog:
    """A catalog that nobody has migrated."""
    address = make_url(shared_address)
    if address.get_backend_name() == "sqlite":
        Path(str(address.database)).parent.mkdir()
        return Catalog(engine=sqlite_engine(address))
    return Catalog(engine=postgres_engine(address))


@pytest.fixture
def first_revision(shared_address: str) -> str:
    """A catalog as the first Strandline left it."""
    old = make_old(shared_address)
    with old.writing() as connection:
        command.upgrade(migration_config(connection), "0001")
        for statement in FIRST_REVISION:
            connection.exec_driver_sql(statement)
    old.close()
    return shared_address


def test_a_catalog_of_the_first_revision_keeps_its_datasets_and_cursors(first_revision: str) -> None:
    catalog = open_catalog(first_revision)

    known = read_view(catalog).nodes["orders"]
    assert (known.kind, known.table_id, known.table_version, known.row_count, known.bytes) == (
        Job.kind,
        "table-1",
        7,
        70,
        700,
    )
    assert known.configs == (WrittenConfig(hash="config-a", parts={"sql": "5a"}),)
    assert (known.counts, known.as_of) == ({"accepted": 3}, "2024-01-01T00:00:00Z")
    assert known.cursors == {"sales": Cursor(table_id="sales-table", version=9)}
    assert known.files == {"in/a": a_file("in/a", rows=3)}
    assert (known.partitions, known.waiting) == ({}, ())
    assert read_invalidations(catalog, ("orders",)) == ([], [])
    assert [run.run for run in read_runs(catalog, 2)] == ["run-1"]
    catalog.close()


def test_a_migrated_catalog_takes_partitions_and_invalidations_where_it_left_off(first_revision: str) -> None:
    catalog = open_catalog(first_revision)
    lease = acquire_lease(catalog, "orders", "worker", 60, 41, False)

    commits = [
        a_commit(v, partitions={"0-10": v}, waiting=("10-20",), invalidations=(an_invalidation(f"i-{v}"),))
        for v in (7, 8)
    ]
    record(catalog, lease, *commits, readers=("totals",))

    known = read_view(catalog).nodes["orders"]
    assert (lease.token, lease.must_fence) == (42, False)
    assert (known.table_version, known.waiting) == (8, ("10-20",))
    assert {key: p.table_version for key, p in known.partitions.items()} == {"0-10": 8}
    assert [row["id"] for row in read_invalidations(catalog, ("totals",))[0]] == ["i-8"]
    assert known.cursors == {"sales": Cursor(table_id="sales-table", version=9)}
    catalog.close()


def test_processes_that_migrate_an_old_catalog_together_all_find_it_migrated_once(
    processes: Pool, first_revision: str
) -> None:
    results = in_processes(processes, racers.open_and_use, first_revision)

    assert results == [1] * PROCESSES


def test_a_catalog_of_a_newer_strandline_is_refused(shared_address: str) -> None:
    catalog = open_catalog(shared_address)
    with catalog.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    catalog.close()

    with pytest.raises(OutsideError, match="9999") as refused:
        open_catalog(shared_address)

    assert refused.value.slug == "catalog-newer"


def test_an_up_to_date_catalog_opens_quickly_and_without_alembic(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/catalog.db"
    open_catalog(address).close()
    code = f"""
import sys, time, strandline.catalog as c
started = time.perf_counter()
c.open_catalog({address!r}).close()
print(
    time.perf_counter() - started,
    'alembic' in sys.modules,
    'sqlalchemy.dialects.postgresql' in sys.modules,
)
"""

    answers = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]

    assert min(float(seconds) for seconds, _, _ in answers) < 0.08
    assert answers[0][1:] == ["False", "False"]


def test_sqlite_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path}/new/folder/catalog.db")

    with catalog.writing() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }

    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    catalog.close()


def test_a_postgres_that_restarts_costs_no_failed_call(postgres: Postgres) -> None:
    address = postgres.new_database()
    catalog = open_catalog(address)
    with postgres.connect() as connection:
        name = address.rsplit("/", 1)[1]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )

    start_run(catalog, "run-1", "2024-01-01", "person")

    assert len(read_runs(catalog, 1)) == 1
    catalog.close()


def refused(address: str) -> OutsideError:
    with pytest.raises(OutsideError) as error:
        open_catalog(address)
    assert error.value.slug == "catalog-unreachable"
    assert error.value.remedy
    return error.value


def test_a_file_that_is_no_database_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"certainly not a database" * 100)

    error = refused(f"sqlite:///{tmp_path}/catalog.db")

    assert "catalog.db" in str(error)
    assert "rebuild-catalog" in error.remedy


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert "file/below" in str(refused(f"sqlite:///{tmp_path}/file/below/catalog.db"))


def test_a_locked_database_is_said_to_be_locked_when_opening_and_when_writing(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/catalog.db?timeout=0.1"
    catalog = open_catalog(address)
    with sqlite3.connect(tmp_path / "fresh.db") as holder:
        holder.execute("BEGIN EXCLUSIVE")

        assert "Another process" in refused(f"sqlite:///{tmp_path}/fresh.db?timeout=0.1").remedy
    with sqlite3.connect(tmp_path / "catalog.db") as holder:
        holder.execute("BEGIN IMMEDIATE")

        with pytest.raises(OutsideError, match="locked") as locked:
            acquire_lease(catalog, "orders", "worker", 60, 0, False)
        assert locked.value.slug == "catalog-unreachable"
    catalog.close()


@pytest.mark.parametrize(
    "address", ["someone:hidden-word@127.0.0.1:9/catalog", "someone@127.0.0.1:9/catalog?password=hidden-word"]
)
def test_a_server_that_does_not_answer_is_named_without_its_password(address: str) -> None:
    error = refused(f"postgresql+psycopg://{address}")

    assert "127.0.0.1" in str(error)
    assert "hidden-word" not in str(error)


def test_a_wrong_password_is_not_printed(postgres: Postgres) -> None:
    address = postgres.new_database()

    error = refused(address.replace(quote(PASSWORD, safe=""), "hidden-word"))

    assert "password authentication failed" in str(error)
    assert "hidden-word" not in str(error)


@pytest.mark.parametrize(
    "address",
    [
        "mysql://someone:hidden-word@host/catalog",
        "someone:hidden-word@host",
        "postgresql+psycopg://a:hidden-word@h:port/d",
        "",
    ],
)
def test_an_address_that_is_none_is_a_mistake_of_the_project_and_is_not_printed(address: str) -> None:
    with pytest.raises(ProjectError) as error:
        open_catalog(address)

    assert error.value.slug == "catalog-address"
    assert "hidden-word" not in str(error.value)


def test_deliveries_of_an_older_catalog_still_go_one_at_a_time_for_each_key(shared_address: str) -> None:
    old = make_old(shared_address)
    with old.writing() as connection:
        command.upgrade(migration_config(connection), "0004")
        for name, key in (("a1", "größe"), ("a2", "größe"), ("b1", "b")):
            connection.execute(
                text(
                    "INSERT INTO deliveries (id, event_id, event_type, trigger_name, endpoint, key,"
                    " source_timestamp, body, status, attempts, next_at, created_at, error, claim_token,"
                    " claimed_by) VALUES (:id, :id, 'MATCH', 'alert', 'ops', :key, 1, :body, 'pending', 0,"
                    " '2024-01-01T00:00:00.000Z', '2024-01-01T00:00:00.000Z', '', 0, '')"
                ),
                {"id": name, "key": key, "body": b"{}"},
            )
    old.close()

    catalog = open_catalog(shared_address)
    later = NewDelivery(
        event_id="b2",
        event_type="MATCH",
        trigger="alert",
        endpoint="ops",
        key="b",
        source_timestamp=1,
        body=b"{}",
    )
    enqueue_deliveries(catalog, "alert", None, ("table", 0), [later])

    first = claim_deliveries(catalog, "ops", "sender", 60, 10, Ordering.PER_KEY)
    assert [one.event_id for one in first] == ["a1", "b1"]
    catalog.close()
