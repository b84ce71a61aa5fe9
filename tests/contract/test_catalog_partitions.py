"""What a catalog stores about partitions: their configuration, and which wait to be final."""

from datetime import UTC, datetime, timedelta

import pytest

from strandline.catalog import Catalog, acquire_lease, find_node, read_view
from strandline.model.catalog_records import NodeRecord, PartitionVersion
from strandline.model.commits import Operation
from strandline.model.errors import FencedError
from strandline.model.leases import Lease
from strandline.model.project import Job
from tests.contract.builders import COMMITTED_AT, a_commit, a_cursor, record, record_nothing_new

LATER = COMMITTED_AT + timedelta(hours=1)
BUILT = Operation.REPLACE_PARTITIONS


def take(catalog: Catalog, dataset: str = "orders") -> Lease:
    return acquire_lease(catalog, dataset, "worker", 60, 0, True)


def orders(catalog: Catalog) -> NodeRecord:
    return read_view(catalog).nodes["orders"]


def versions(catalog: Catalog) -> dict[str, tuple[int, str, int]]:
    """By partition: its table version, configuration and rows."""
    return {
        key: (p.table_version, p.config_hash, p.row_count) for key, p in orders(catalog).partitions.items()
    }


def test_a_partition_is_remembered_as_its_commit_built_it(catalog: Catalog) -> None:
    at = datetime(2024, 3, 5, 7, 8, 9, 123_000, tzinfo=UTC)

    record(
        catalog,
        take(catalog),
        a_commit(4, operation=BUILT, partitions={"größe/0-10": 3}, committed_at=at, bytes_added=900),
    )

    assert orders(catalog).partitions == {
        "größe/0-10": PartitionVersion(
            dataset="orders",
            partition_key="größe/0-10",
            version=at,
            config_hash="config-a",
            schema_hash="schema of config-a",
            location="/lake/orders",
            row_count=3,
            bytes=900,
            table_version=4,
        )
    }


def test_a_partition_built_again_is_a_new_version_and_the_others_stay(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, partitions={"0-10": 3, "10-20": 4}))

    record(
        catalog,
        lease,
        a_commit(
            2, operation=BUILT, config="config-b", partitions={"10-20": 5, "20-30": 6}, committed_at=LATER
        ),
    )

    assert versions(catalog) == {
        "0-10": (1, "config-a", 3),
        "10-20": (2, "config-b", 5),
        "20-30": (2, "config-b", 6),
    }
    partitions = orders(catalog).partitions
    assert [partitions[key].version for key in ("0-10", "10-20", "20-30")] == [COMMITTED_AT, LATER, LATER]
    assert partitions["10-20"].schema_hash == "schema of config-b"


def test_commits_recorded_together_leave_each_partition_as_the_last_built_it(catalog: Catalog) -> None:
    commits = [a_commit(v, operation=BUILT, partitions={"0-10": v}) for v in (3, 1, 2)]

    record(catalog, take(catalog), *commits)

    assert versions(catalog) == {"0-10": (3, "config-a", 3)}


def test_a_commit_recorded_twice_builds_nothing_again(catalog: Catalog) -> None:
    lease = take(catalog)
    first = a_commit(1, operation=BUILT, partitions={"0-10": 1})
    second = a_commit(2, operation=BUILT, partitions={"0-10": 2}, committed_at=LATER)
    record(catalog, lease, first, second)
    before = orders(catalog)

    record(catalog, lease, first)
    record(catalog, lease, first, second)

    assert orders(catalog).partitions == before.partitions
    assert versions(catalog) == {"0-10": (2, "config-a", 2)}


def test_an_overwrite_leaves_no_partition_but_its_own(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, partitions={"0-10": 3, "10-20": 4}))

    record(catalog, lease, a_commit(2, operation=Operation.OVERWRITE, whole=True, partitions={"0-20": 7}))

    assert versions(catalog) == {"0-20": (2, "config-a", 7)}


def test_an_overwrite_without_partitions_leaves_none(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, partitions={"0-10": 3}))

    record(catalog, lease, a_commit(2, operation=Operation.OVERWRITE, whole=True))

    assert versions(catalog) == {}


@pytest.mark.parametrize("operation", [o for o in Operation if o is not Operation.OVERWRITE])
def test_no_other_commit_clears_partitions_that_it_did_not_build(
    catalog: Catalog, operation: Operation
) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, partitions={"0-10": 3}))

    record(catalog, lease, a_commit(2, operation=operation, whole=True))

    assert versions(catalog) == {"0-10": (1, "config-a", 3)}


def test_an_overwrite_clears_the_partitions_of_its_own_dataset_alone(catalog: Catalog) -> None:
    record(catalog, take(catalog, "orders"), a_commit(1, operation=BUILT, partitions={"0-10": 3}))
    payments = take(catalog, "payments")
    record(catalog, payments, a_commit(1, node="payments", operation=BUILT, partitions={"0-10": 4}))

    record(catalog, payments, a_commit(2, node="payments", operation=Operation.OVERWRITE))

    assert versions(catalog) == {"0-10": (1, "config-a", 3)}
    assert read_view(catalog).nodes["payments"].partitions == {}


def test_a_recreated_table_has_the_partitions_of_its_own_commits_alone(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(9, operation=BUILT, partitions={"0-10": 3}, waiting=("10-20",)))

    record(catalog, lease, a_commit(0, table_id="table-2", operation=BUILT, partitions={"20-30": 1}))

    assert versions(catalog) == {"20-30": (0, "config-a", 1)}
    assert orders(catalog).waiting == ()


def test_the_bytes_of_a_commit_are_shared_by_rows(catalog: Catalog) -> None:
    partitions = {"0-10": 1, "10-20": 2, "20-30": 0, "30-40": 4}

    record(catalog, take(catalog), a_commit(1, operation=BUILT, partitions=partitions, bytes_added=1000))

    shares = {key: p.bytes for key, p in orders(catalog).partitions.items()}
    assert shares == {"0-10": 142, "10-20": 285, "20-30": 0, "30-40": 571}


def test_partitions_without_rows_weigh_nothing(catalog: Catalog) -> None:
    record(
        catalog,
        take(catalog),
        a_commit(1, operation=Operation.COUNTS, partitions={"0-10": 0, "10-20": 0}, bytes_added=1000),
    )

    assert {p.bytes for p in orders(catalog).partitions.values()} == {0}


def test_one_node_is_found_with_its_own_partitions(catalog: Catalog) -> None:
    for dataset in ("orders", "payments"):
        record(
            catalog,
            take(catalog, dataset),
            a_commit(1, node=dataset, operation=BUILT, partitions={dataset: 1}, waiting=("w",)),
        )

    node = find_node(catalog, "payments")

    assert node == read_view(catalog).nodes["payments"]
    assert node is not None
    assert set(node.partitions) == {"payments"}


def test_a_stale_token_builds_no_partition(catalog: Catalog) -> None:
    stale = take(catalog)
    record(catalog, stale, a_commit(1, operation=BUILT, partitions={"0-10": 3}, waiting=("10-20",)))
    take(catalog)

    with pytest.raises(FencedError):
        record(catalog, stale, a_commit(2, operation=Operation.OVERWRITE, partitions={"0-20": 9}))
    with pytest.raises(FencedError):
        record_nothing_new(catalog, stale, version=3, waiting=("90-100",))

    assert versions(catalog) == {"0-10": (1, "config-a", 3)}
    assert orders(catalog).waiting == ("10-20",)


# what waits to be final


def test_what_waits_is_what_the_last_commit_said(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, waiting=("10-20", "100-110")))
    before = orders(catalog).waiting

    record(catalog, lease, a_commit(2, operation=BUILT, partitions={"10-20": 3}, waiting=("100-110",)))

    assert (before, orders(catalog).waiting) == (("10-20", "100-110"), ("100-110",))


def test_an_unchanged_output_says_what_waits_too(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, operation=BUILT, partitions={"0-10": 3}, waiting=("10-20",)))

    record_nothing_new(catalog, lease, version=2, waiting=("10-20", "20-30"))
    waited = orders(catalog).waiting
    record_nothing_new(catalog, lease, version=3)

    assert (waited, orders(catalog).waiting) == (("10-20", "20-30"), ())
    assert versions(catalog) == {"0-10": (1, "config-a", 3)}


def test_an_output_without_a_table_can_wait(catalog: Catalog) -> None:
    record_nothing_new(catalog, take(catalog), version=1, waiting=("0-10",))

    assert (orders(catalog).table_version, orders(catalog).waiting) == (-1, ("0-10",))


@pytest.mark.parametrize("operation", [Operation.FENCE, Operation.PURGE, Operation.INVALIDATE])
def test_a_commit_that_computed_nothing_leaves_what_waits(catalog: Catalog, operation: Operation) -> None:
    lease = take(catalog)
    record(
        catalog,
        lease,
        a_commit(1, operation=BUILT, waiting=("10-20",), inputs={"sales": a_cursor(5)}),
        kind=Job.kind,
    )

    record(catalog, lease, a_commit(2, operation=operation), kind=Job.kind)

    assert (orders(catalog).table_version, orders(catalog).waiting) == (2, ("10-20",))
