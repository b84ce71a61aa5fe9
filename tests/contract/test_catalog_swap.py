"""A new catalog replaces the one in use in one step, on SQLite and on Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from strandline.catalog import (
    Catalog,
    acquire_lease,
    list_leases,
    open_catalog,
    opened_aside,
    read_invalidations,
    read_runs,
    read_view,
    require_writable,
    start_run,
    swap,
)
from strandline.model.errors import ConflictError, OutsideError
from tests.contract.builders import a_commit, a_cursor, a_file, an_invalidation, record


class DiedError(Exception):
    """Stands for the end of a process."""


def pass_by(_point: str, _what: str) -> None:
    """Nobody dies."""


@contextmanager
def opened(address: str) -> Iterator[Catalog]:
    catalog = open_catalog(address)
    yield catalog
    catalog.close()


def fill(catalog: Catalog, version: int) -> None:
    """A table with a cursor, a file, a partition and an invalidation, at a version."""
    commit = a_commit(
        version,
        inputs={"sales": a_cursor(version * 10)},
        files=(a_file(f"in/{version}"),),
        partitions={f"p{version}": version},
        invalidations=(an_invalidation(f"i-{version}"),),
    )
    lease = acquire_lease(catalog, "orders", "builder", 60, version, True)
    record(catalog, lease, commit, release=True)


def seen(catalog: Catalog) -> tuple[object, ...]:
    node = read_view(catalog).nodes["orders"]
    ids = [row["id"] for row in read_invalidations(catalog, ["totals"])[0]]
    return node.table_version, dict(node.cursors), dict(node.files), list(node.partitions), ids


@pytest.fixture
def address(shared_address: str) -> str:
    """A catalog that knows version 7, has one run and a released lease."""
    with opened(shared_address) as catalog:
        fill(catalog, 7)
        start_run(catalog, "run-1", "2024-01-01", "person")
    return shared_address


def test_all_that_tables_tell_is_replaced_and_the_rest_stays(address: str) -> None:
    with opened_aside(address) as aside:
        fill(aside.catalog, 9)
        wanted = seen(aside.catalog)

        assert swap(address, aside, pass_by, break_leases=False) is None

    with opened(address) as catalog:
        assert seen(catalog) == wanted
        assert [run.run for run in read_runs(catalog, 5)] == ["run-1"]
        assert [(lease.dataset, lease.returned) for lease in list_leases(catalog)] == [("orders", True)]


@pytest.mark.parametrize("point", ["before-swap", "after-swap"])
def test_who_dies_leaves_the_old_one_or_the_new_one_whole(address: str, point: str) -> None:
    def die(here: str, _what: str) -> None:
        if here == point:
            raise DiedError

    with opened(address) as catalog:
        old = seen(catalog)
    with opened_aside(address) as aside:
        fill(aside.catalog, 9)
        new = seen(aside.catalog)
        with pytest.raises(DiedError):
            swap(address, aside, die, break_leases=False)

    with opened(address) as catalog:
        assert seen(catalog) == (old if point == "before-swap" else new)
        fill(catalog, 11)


def test_a_lease_that_runs_refuses_it_unless_its_holder_is_known_to_be_gone(address: str) -> None:
    with opened(address) as catalog:
        old = seen(catalog)
        acquire_lease(catalog, "orders", "someone", 60, 0, False)
    with opened_aside(address) as aside:
        fill(aside.catalog, 9)

        with pytest.raises(ConflictError, match="being written by someone"):
            swap(address, aside, pass_by, break_leases=False)
        with opened(address) as catalog:
            assert seen(catalog) == old
            assert [lease.held for lease in list_leases(catalog)] == [True]
        swap(address, aside, pass_by, break_leases=True)

    with opened(address) as catalog:
        assert seen(catalog) != old
        assert acquire_lease(catalog, "orders", "next", 60, 0, True).must_fence


def test_a_catalog_that_lost_a_table_is_made_anew(address: str) -> None:
    with opened(address) as catalog, catalog.writing() as connection:
        connection.execute(text("DROP TABLE partition_versions"))
    with opened_aside(address) as aside:
        fill(aside.catalog, 9)
        wanted = seen(aside.catalog)

        swap(address, aside, pass_by, break_leases=False)

    with opened(address) as catalog:
        assert seen(catalog) == wanted


def test_an_empty_database_gets_everything(shared_address: str) -> None:
    with opened_aside(shared_address) as aside:
        fill(aside.catalog, 9)
        wanted = seen(aside.catalog)

        swap(shared_address, aside, pass_by, break_leases=False)

    with opened(shared_address) as catalog:
        assert seen(catalog) == wanted


@pytest.mark.parametrize("point", ["before-migrate", "after-migrate"])
def test_who_dies_while_migrating_has_changed_nothing(shared_address: str, point: str) -> None:
    passed = []

    def die(here: str, _what: str) -> None:
        passed.append(here)
        if here == point:
            raise DiedError

    with pytest.raises(DiedError):
        open_catalog(shared_address, die)

    assert passed[-1] == point
    with opened(shared_address) as catalog:
        assert not read_view(catalog).nodes


def test_a_catalog_that_another_holds_is_said_to_be_locked(tmp_path: object) -> None:
    address = f"sqlite:///{tmp_path}/catalog.db?timeout=0.1"
    with opened(address) as catalog, opened(address) as other:
        require_writable(catalog)
        with other.writing(), pytest.raises(OutsideError, match="locked"):
            require_writable(catalog)
