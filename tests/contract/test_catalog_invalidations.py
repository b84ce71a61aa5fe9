"""Invalidations are recorded once, owed by each job that reads the dataset, and acknowledged (DESIGN 6).

A job acknowledges one when its cursor passes it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from strandline.catalog import Catalog, acquire_lease, read_invalidations
from strandline.model.commits import CommitRecord, Invalidation, Operation
from strandline.model.condition_json import from_row_filter
from strandline.model.errors import FencedError
from strandline.model.leases import Lease
from strandline.model.plan import Cursor
from strandline.model.project import Chain, Job
from strandline.model.scope import Partitions, Range
from tests.contract.builders import COMMITTED_AT, a_commit, an_invalidation, record, record_nothing_new

JOBS = ("compact", "evaluate")
LATER = COMMITTED_AT + timedelta(hours=1)


def take(catalog: Catalog, dataset: str) -> Lease:
    return acquire_lease(catalog, dataset, "worker", 60, 0, True)


def an_invalidating(
    version: int,
    *ids: str,
    node: str = "blocks",
    table_id: str = "blocks-table",
    committed_at: datetime = COMMITTED_AT,
) -> CommitRecord:
    invalidations = tuple(an_invalidation(id_) for id_ in ids)
    return a_commit(
        version,
        node=node,
        table_id=table_id,
        operation=Operation.INVALIDATE,
        invalidations=invalidations,
        committed_at=committed_at,
    )


def invalidate(
    catalog: Catalog, *commits: CommitRecord, readers: tuple[str, ...] = JOBS, dataset: str = "blocks"
) -> None:
    record(catalog, take(catalog, dataset), *commits, kind=Chain.kind, readers=readers)


def read(
    catalog: Catalog, job: str, version: int, dataset: str = "blocks", table_id: str = "blocks-table"
) -> None:
    """A job has read a dataset up to a version and found nothing to write."""
    record_nothing_new(
        catalog, take(catalog, job), version=0, cursors={dataset: Cursor(table_id=table_id, version=version)}
    )


def owed(catalog: Catalog, jobs: tuple[str, ...] = JOBS) -> dict[str, set[str]]:
    """By invalidation: the jobs that have not processed it yet."""
    jobs_by_invalidation: dict[str, set[str]] = {
        row["id"]: set() for row in read_invalidations(catalog, jobs)[0]
    }
    for row in read_invalidations(catalog, jobs)[1]:
        if row["processed_at"] is None:
            jobs_by_invalidation[row["invalidation_id"]].add(row["job"])
    return jobs_by_invalidation


def processed(catalog: Catalog, jobs: tuple[str, ...] = JOBS) -> Mapping[str, bool]:
    return {row["id"]: row["processed_at"] is not None for row in read_invalidations(catalog, jobs)[0]}


def test_an_invalidation_is_remembered_with_its_scope_and_why(catalog: Catalog) -> None:
    at = datetime(2024, 3, 5, 7, 8, 9, 123_000, tzinfo=UTC)
    invalidation = Invalidation(
        id="i-1",
        scope=Range(column="block_number", low=5, high=9, where=from_row_filter({"chain": {"eq": "größe"}})),
        reason="reorg",
        source_event={"old_tip": "0xa", "new_tip": "0xb", "fork_block": 4},
    )

    invalidate(
        catalog,
        a_commit(
            7, node="blocks", operation=Operation.REPLACE_KEYS, invalidations=(invalidation,), committed_at=at
        ),
    )

    (recorded,), jobs = read_invalidations(catalog, JOBS)
    assert recorded == {
        "id": "i-1",
        "dataset": "blocks",
        "scope": "row_range",
        "partition_key": None,
        "row_filter": {"block_number": {"gte": 5, "lte": 9}, "chain": {"eq": "größe"}},
        "reason": "reorg",
        "source_event": {"old_tip": "0xa", "new_tip": "0xb", "fork_block": 4},
        "created_at": at,
        "table_id": "table-1",
        "table_version": 7,
        "processed_at": None,
    }
    assert [(row["invalidation_id"], row["job"], row["processed_at"]) for row in jobs] == [
        ("i-1", "compact", None),
        ("i-1", "evaluate", None),
    ]


def test_an_invalidation_of_a_partition_names_it(catalog: Catalog) -> None:
    invalidation = Invalidation(id="i-1", scope=Partitions(names=("0-10",)), reason="a bad disk")

    invalidate(
        catalog, a_commit(1, node="blocks", operation=Operation.INVALIDATE, invalidations=(invalidation,))
    )

    ((recorded,), _) = read_invalidations(catalog, JOBS)
    assert (
        recorded["scope"],
        recorded["partition_key"],
        recorded["row_filter"],
        recorded["source_event"],
    ) == (
        "partition",
        "0-10",
        None,
        None,
    )


def test_a_reason_with_characters_a_database_refuses_is_still_recorded(catalog: Catalog) -> None:
    invalidation = an_invalidation("i-1", reason="a \x00 byte and half a \ud83d pair")

    invalidate(
        catalog, a_commit(1, node="blocks", operation=Operation.INVALIDATE, invalidations=(invalidation,))
    )

    ((recorded,), _) = read_invalidations(catalog, JOBS)
    assert recorded["reason"] == "a ? byte and half a ? pair"


def test_a_commit_recorded_twice_invalidates_once(catalog: Catalog) -> None:
    commit = an_invalidating(3, "i-1", "i-2")
    lease = take(catalog, "blocks")

    record(catalog, lease, commit, readers=JOBS)
    record(catalog, lease, commit, readers=JOBS)

    assert owed(catalog) == {"i-1": set(JOBS), "i-2": set(JOBS)}
    assert len(read_invalidations(catalog, JOBS)[1]) == 4


def test_a_commit_recorded_again_after_it_was_processed_is_owed_by_nobody(catalog: Catalog) -> None:
    commit = an_invalidating(3, "i-1")
    invalidate(catalog, commit)
    for job in JOBS:
        read(catalog, job, 3)

    invalidate(catalog, commit)

    assert owed(catalog) == {"i-1": set()}


def test_a_catalog_that_lost_the_dataset_records_its_log_again_without_a_second_invalidation(
    catalog: Catalog,
) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    read(catalog, "compact", 3)

    # Another table takes the place of the first, so the records of the first are forgotten. Then its log
    # appears again.
    invalidate(catalog, an_invalidating(0, table_id="another-table"))
    invalidate(catalog, an_invalidating(3, "i-1"))

    assert owed(catalog) == {"i-1": {"evaluate"}}


def test_invalidations_stand_in_the_order_they_were_made(catalog: Catalog) -> None:
    invalidate(
        catalog, an_invalidating(2, "b"), an_invalidating(1, "c"), an_invalidating(3, "a", committed_at=LATER)
    )
    invalidate(catalog, an_invalidating(9, "d", node="others"), dataset="others")

    assert [row["id"] for row in read_invalidations(catalog, JOBS)[0]] == ["c", "b", "d", "a"]


# acknowledged


@pytest.mark.parametrize(
    ("version", "still_owed"), [(2, {"compact", "evaluate"}), (3, {"evaluate"}), (4, {"evaluate"})]
)
def test_a_job_has_processed_it_when_its_cursor_reaches_it(
    catalog: Catalog, version: int, still_owed: set[str]
) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))

    read(catalog, "compact", version)

    assert owed(catalog) == {"i-1": still_owed}


def test_a_jobs_commit_acknowledges_as_its_silence_does(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"), an_invalidating(5, "i-2"))
    commit = a_commit(1, node="compact", inputs={"blocks": Cursor(table_id="blocks-table", version=4)})

    record(catalog, take(catalog, "compact"), commit, kind=Job.kind)

    assert owed(catalog) == {"i-1": {"evaluate"}, "i-2": set(JOBS)}


def test_commits_recorded_together_acknowledge_up_to_the_last_cursor(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"), an_invalidating(5, "i-2"))
    commits = [
        a_commit(v, node="compact", inputs={"blocks": Cursor(table_id="blocks-table", version=v + 3)})
        for v in (0, 1, 2)
    ]

    record(catalog, take(catalog, "compact"), *commits, kind=Job.kind)

    assert owed(catalog) == {"i-1": {"evaluate"}, "i-2": {"evaluate"}}


def test_a_cursor_in_another_table_acknowledges_nothing(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))

    read(catalog, "compact", 9, table_id="another-table")
    read(catalog, "evaluate", 9, dataset="others")

    assert owed(catalog) == {"i-1": set(JOBS)}


def test_a_job_that_reads_the_dataset_without_owing_it_acknowledges_for_nobody(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"), readers=("evaluate",))

    read(catalog, "compact", 9)

    assert owed(catalog) == {"i-1": {"evaluate"}}


def test_a_stale_token_neither_invalidates_nor_acknowledges(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    stale = {name: take(catalog, name) for name in ("blocks", "compact")}
    for name in stale:
        take(catalog, name)

    with pytest.raises(FencedError):
        record(catalog, stale["blocks"], an_invalidating(4, "i-2"), readers=JOBS)
    with pytest.raises(FencedError):
        record_nothing_new(
            catalog,
            stale["compact"],
            version=0,
            cursors={"blocks": Cursor(table_id="blocks-table", version=9)},
        )

    assert owed(catalog) == {"i-1": set(JOBS)}


def test_a_time_of_processing_stays_when_the_cursor_moves_on(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    read(catalog, "compact", 3)
    before = read_invalidations(catalog, ("compact",))

    read(catalog, "compact", 9)

    assert read_invalidations(catalog, ("compact",)) == before


# a table made anew


def test_a_table_made_anew_releases_what_was_owed_to_the_old_one_once_each_job_has_read_it(
    catalog: Catalog,
) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    invalidate(catalog, an_invalidating(0, table_id="new-table"))
    before = owed(catalog)

    read(catalog, "compact", 0, table_id="new-table")
    by_one = owed(catalog)
    record(
        catalog,
        take(catalog, "evaluate"),
        a_commit(1, node="evaluate", inputs={"blocks": Cursor(table_id="new-table", version=0)}),
    )

    assert before == {"i-1": set(JOBS)}
    assert by_one == {"i-1": {"evaluate"}}
    assert processed(catalog) == {"i-1": True}


def test_what_is_said_of_the_new_table_is_still_owed_until_a_cursor_reaches_it(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    invalidate(
        catalog, an_invalidating(0, table_id="new-table"), an_invalidating(5, "i-2", table_id="new-table")
    )

    read(catalog, "compact", 4, table_id="new-table")

    assert owed(catalog) == {"i-1": {"evaluate"}, "i-2": set(JOBS)}


def test_a_cursor_left_in_the_old_table_acknowledges_nothing_of_the_new_one(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    invalidate(catalog, an_invalidating(0, "i-2", table_id="new-table"))

    read(catalog, "compact", 9)

    assert owed(catalog) == {"i-1": {"evaluate"}, "i-2": set(JOBS)}


def test_a_table_made_anew_releases_nothing_of_another_dataset(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    invalidate(catalog, an_invalidating(3, "i-2", node="others"), dataset="others")
    invalidate(catalog, an_invalidating(0, table_id="new-table"))

    for job in JOBS:
        read(catalog, job, 0, table_id="new-table")

    assert owed(catalog) == {"i-1": set(), "i-2": set(JOBS)}


# processed


def test_an_invalidation_is_processed_when_every_job_has_processed_it(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))

    read(catalog, "compact", 3)
    by_one = processed(catalog)
    read(catalog, "evaluate", 3)

    (recorded,), jobs = read_invalidations(catalog, JOBS)
    assert by_one == {"i-1": False}
    assert recorded["processed_at"] == max(row["processed_at"] for row in jobs)
    assert recorded["processed_at"].tzinfo is UTC


def test_a_job_that_was_removed_releases_what_it_owed(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    read(catalog, "compact", 3)

    assert processed(catalog, JOBS) == {"i-1": False}
    assert processed(catalog, ("compact",)) == {"i-1": True}
    assert [row["job"] for row in read_invalidations(catalog, ("compact",))[1]] == ["compact"]


def test_a_job_added_later_owes_nothing(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"))
    for job in JOBS:
        read(catalog, job, 3)

    assert processed(catalog, (*JOBS, "later")) == {"i-1": True}
    assert {row["job"] for row in read_invalidations(catalog, (*JOBS, "later"))[1]} == set(JOBS)


def test_an_invalidation_that_concerns_no_job_is_processed_from_the_start(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"), readers=())

    ((recorded,), jobs) = read_invalidations(catalog, JOBS)

    assert (recorded["processed_at"], jobs) == (COMMITTED_AT, [])


def test_invalidations_of_two_datasets_are_acknowledged_apart(catalog: Catalog) -> None:
    invalidate(catalog, an_invalidating(3, "i-1"), an_invalidating(4, "i-2"))
    invalidate(catalog, an_invalidating(1, "i-3", node="others"), dataset="others", readers=("evaluate",))

    read(catalog, "compact", 3)
    half = processed(catalog, JOBS), processed(catalog, ("compact",)), processed(catalog, ())
    read(catalog, "evaluate", 9)
    read(catalog, "compact", 9)

    assert half == (
        {"i-1": False, "i-2": False, "i-3": False},
        {"i-1": True, "i-2": False, "i-3": True},
        {"i-1": True, "i-2": True, "i-3": True},
    )
    assert processed(catalog, JOBS) == {"i-1": True, "i-2": True, "i-3": False}


def test_a_thousand_invalidations_are_acknowledged_by_one_cursor(catalog: Catalog) -> None:
    invalidate(catalog, *(an_invalidating(v, f"i-{v}") for v in range(1000)))

    read(catalog, "compact", 998)

    assert {id_ for id_, jobs in owed(catalog).items() if "compact" in jobs} == {"i-999"}
    assert not any(processed(catalog).values())
