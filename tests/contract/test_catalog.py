"""What a catalog promises, whichever database holds it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import select, update

from strandline.catalog import (
    Catalog,
    acquire_lease,
    audit,
    find_node,
    finish_run,
    next_token,
    read_runs,
    read_tasks,
    read_view,
    record_task,
    release_lease,
    renew_leases,
    start_run,
)
from strandline.catalog.tables import audit_log, leases, tasks
from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import Operation, WrittenConfig
from strandline.model.errors import ConflictError, FencedError
from strandline.model.kind import NodeKind
from strandline.model.leases import Lease
from strandline.model.plan import Status
from strandline.model.project import FactDataset, FileSource, Job, Quarantine, Snapshot
from strandline.model.scope import Described
from tests.contract.builders import a_commit, a_cursor, a_file, a_result, record, record_nothing_new


def take(
    catalog: Catalog,
    holder: str = "worker-1",
    *,
    dataset: str = "orders",
    seconds: float = 60,
    table_token: int = 0,
    break_others: bool = False,
) -> Lease:
    return acquire_lease(catalog, dataset, holder, seconds, table_token, break_others)


def orders(catalog: Catalog) -> NodeRecord:
    return read_view(catalog).nodes["orders"]


def all_at_once(count: int, act: Callable[[int], object]) -> list[object]:
    """What `act` returned or raised in each of several threads started together."""
    together = Barrier(count)

    def one(number: int) -> object:
        together.wait()
        try:
            return act(number)
        except ConflictError as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))


# leases


def test_a_first_lease_starts_above_the_tables_token_and_asks_for_no_fence(catalog: Catalog) -> None:
    lease = take(catalog)

    assert (lease.token, lease.must_fence) == (1, False)


def test_a_first_lease_on_a_table_that_knows_a_token_asks_for_a_fence_because_the_catalog_was_lost(
    catalog: Catalog,
) -> None:
    lease = take(catalog, table_token=41)

    assert (lease.token, lease.must_fence) == (42, True)


def test_a_table_ahead_of_the_catalog_asks_for_a_fence_because_the_catalog_is_an_old_copy(
    catalog: Catalog,
) -> None:
    release_lease(catalog, take(catalog))

    lease = take(catalog, table_token=41)

    assert (lease.token, lease.must_fence) == (42, True)


def test_a_lease_given_back_is_taken_by_the_next_without_a_fence(catalog: Catalog) -> None:
    first = take(catalog, "worker-1")
    release_lease(catalog, first)

    second = take(catalog, "worker-2", table_token=first.token)

    assert (second.token, second.must_fence) == (first.token + 1, False)


def test_a_lease_held_by_another_is_refused_naming_who_and_until_when(catalog: Catalog) -> None:
    held = take(catalog, "worker-1")

    with pytest.raises(ConflictError, match="worker-1") as refused:
        take(catalog, "worker-2")

    assert refused.value.slug == "lease-held"
    assert f"{held.expires_at:%Y-%m-%d %H:%M:%S}" in str(refused.value)


def test_a_refusal_leaves_the_holder_its_lease(catalog: Catalog) -> None:
    held = take(catalog, "worker-1")

    with pytest.raises(ConflictError):
        take(catalog, "worker-2", table_token=99)

    assert next_token(catalog, held).token == held.token + 1


@pytest.mark.parametrize(
    ("holder", "seconds", "break_others"),
    [("worker-2", -1, False), ("worker-2", 60, True), ("worker-1", 60, False)],
    ids=["run out", "broken on request", "our own, never given back"],
)
def test_a_lease_that_did_not_end_cleanly_is_taken_over_with_a_fence(
    catalog: Catalog, holder: str, seconds: float, break_others: bool
) -> None:
    lost = take(catalog, "worker-1", seconds=seconds)

    taken = take(catalog, holder, break_others=break_others)

    assert (taken.token, taken.must_fence) == (lost.token + 1, True)
    with pytest.raises(FencedError):
        next_token(catalog, lost)


def test_leases_of_different_datasets_do_not_meet(catalog: Catalog) -> None:
    take(catalog, "worker-1", dataset="orders")

    assert take(catalog, "worker-2", dataset="payments").token == 1


def test_the_next_token_makes_the_one_before_it_stale(catalog: Catalog) -> None:
    first = take(catalog, table_token=3)

    second = next_token(catalog, first)

    assert (second.token, second.must_fence) == (first.token + 1, False)
    with pytest.raises(FencedError):
        next_token(catalog, first)


def test_a_lease_is_given_back_once(catalog: Catalog) -> None:
    lease = take(catalog)
    release_lease(catalog, lease)

    with pytest.raises(FencedError):
        release_lease(catalog, lease)


def test_renewing_prolongs_every_lease_the_holder_holds_and_no_other(catalog: Catalog) -> None:
    take(catalog, "worker-1", dataset="orders", seconds=-1)
    take(catalog, "worker-1", dataset="payments", seconds=-1)
    release_lease(catalog, take(catalog, "worker-1", dataset="refunds"))
    take(catalog, "worker-2", dataset="customers", seconds=-1)

    renewed = renew_leases(catalog, "worker-1", 60)

    assert renewed == 2
    with pytest.raises(ConflictError):
        take(catalog, "worker-3", dataset="orders")
    assert take(catalog, "worker-3", dataset="customers").must_fence


def test_times_are_of_the_database_and_aware_of_utc(catalog: Catalog) -> None:
    lease = take(catalog, seconds=60)

    assert lease.expires_at.tzinfo is UTC
    assert abs(lease.expires_at - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=5)


def test_one_of_many_threads_gets_a_lease_that_never_was(catalog: Catalog) -> None:
    outcomes = all_at_once(8, lambda number: take(catalog, f"worker-{number}"))

    assert sum(isinstance(outcome, Lease) for outcome in outcomes) == 1


@pytest.mark.parametrize("left", ["run out", "given back"])
def test_one_of_many_threads_gets_a_lease_that_is_free(catalog: Catalog, left: str) -> None:
    before = take(catalog, seconds=-1)
    if left == "given back":
        release_lease(catalog, before)

    outcomes = all_at_once(8, lambda number: take(catalog, f"worker-{number + 2}"))

    assert [outcome.token for outcome in outcomes if isinstance(outcome, Lease)] == [before.token + 1]


def test_threads_that_all_break_the_lease_get_different_tokens_and_one_may_record(catalog: Catalog) -> None:
    outcomes = all_at_once(6, lambda number: take(catalog, f"worker-{number}", break_others=True))
    taken = [outcome for outcome in outcomes if isinstance(outcome, Lease)]

    recorded = all_at_once(6, lambda number: record(catalog, taken[number], a_commit(taken[number].token)))

    assert sorted(lease.token for lease in taken) == [1, 2, 3, 4, 5, 6]
    assert [lease.token for lease, outcome in zip(taken, recorded, strict=True) if outcome is None] == [6]
    assert orders(catalog).table_version == 6


# commits


def test_a_commit_is_remembered_with_its_cursors_files_counts_and_configuration(catalog: Catalog) -> None:
    file = a_file("in/Zürich 1.jsonl", rows=3)
    commit = a_commit(
        4, inputs={"sales": a_cursor(9)}, files=(file,), counts={"accepted": 3}, config="config-a"
    )

    record(catalog, take(catalog), commit, kind=FileSource.kind)

    known = orders(catalog)
    assert (known.kind, known.table_id, known.table_version) == (FileSource.kind, "table-1", 4)
    assert (known.row_count, known.bytes, known.as_of) == (40, 400, "2024-01-01T00:00:00Z")
    assert known.configs == (WrittenConfig(hash="config-a", parts={"sql": "digest of config-a"}),)
    assert known.cursors == {"sales": a_cursor(9)}
    assert known.files == {file.path: file}
    assert known.counts == {"accepted": 3}
    assert known.updated_at
    assert known.updated_at.tzinfo is UTC


def test_one_node_is_found_as_the_view_shows_it(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")
    for dataset in ("orders", "payments"):
        record(
            catalog,
            take(catalog, dataset=dataset),
            a_commit(1, inputs={dataset: a_cursor(1)}, files=(a_file(dataset),)),
        )
        record_task(catalog, "run-1", a_result(dataset))

    node = find_node(catalog, "payments")

    assert node == read_view(catalog).nodes["payments"]
    assert node
    assert (set(node.cursors), set(node.files)) == ({"payments"}, {"payments"})
    assert find_node(catalog, "refunds") is None


def test_recording_a_commit_twice_changes_nothing(catalog: Catalog) -> None:
    lease = take(catalog)
    commits = (
        a_commit(1, counts={"accepted": 2}),
        a_commit(2, counts={"accepted": 5, "duplicates": 1}, config="config-b"),
    )
    record(catalog, lease, *commits)
    once = orders(catalog)

    record(catalog, lease, *commits)
    record(catalog, lease, commits[0])

    assert orders(catalog) == once
    assert once.counts == {"accepted": 7, "duplicates": 1}


def test_recording_no_commit_only_gives_the_lease_back(catalog: Catalog) -> None:
    record(catalog, take(catalog), release=True)

    assert not read_view(catalog).nodes
    assert not take(catalog, "worker-2").must_fence


@pytest.mark.parametrize("lost_to", ["another holder", "our next token", "having been given back"])
def test_a_stale_token_records_nothing(catalog: Catalog, lost_to: str) -> None:
    stale = take(catalog)
    record(catalog, stale, a_commit(1, inputs={"sales": a_cursor(1)}))
    match lost_to:
        case "another holder":
            take(catalog, "worker-2", break_others=True)
        case "our next token":
            next_token(catalog, stale)
        case _:
            release_lease(catalog, stale)
    before = orders(catalog)

    with pytest.raises(FencedError):
        record(catalog, stale, a_commit(2, inputs={"sales": a_cursor(2)}))
    with pytest.raises(FencedError):
        record_nothing_new(catalog, stale, version=3, files=(a_file("a"),))

    assert orders(catalog) == before


def test_a_holder_whose_time_ran_out_may_record_while_nobody_took_its_place(catalog: Catalog) -> None:
    record(catalog, take(catalog, seconds=-1), a_commit(1))

    assert orders(catalog).table_version == 1


@pytest.mark.parametrize("release", [True, False])
def test_recording_gives_the_lease_back_only_if_asked(catalog: Catalog, release: bool) -> None:
    lease = take(catalog)

    record(catalog, lease, a_commit(1), release=release)

    with catalog.reading() as connection:
        assert connection.execute(select(leases.c.state)).scalar() == ("released" if release else "held")


def test_a_record_that_fails_half_way_changes_nothing(catalog: Catalog) -> None:
    lease = take(catalog)
    unwritable = a_commit(2, counts={"accepted": object()})  # type: ignore[dict-item]

    with pytest.raises(Exception, match="object"):
        record(catalog, lease, a_commit(1), unwritable, release=True)

    assert not read_view(catalog).nodes
    assert next_token(catalog, lease).token == lease.token + 1


def test_configurations_gather_until_the_output_is_written_whole(catalog: Catalog) -> None:
    lease = take(catalog)
    record(
        catalog,
        lease,
        a_commit(1, config="config-a"),
        a_commit(2, config="config-b"),
        a_commit(3, config="config-a"),
    )
    gathered = [config.hash for config in orders(catalog).configs]

    record(catalog, lease, a_commit(4, config="config-c", whole=True, operation=Operation.OVERWRITE))

    assert gathered == ["config-a", "config-b"]
    assert [config.hash for config in orders(catalog).configs] == ["config-c"]


@pytest.mark.parametrize(
    "operation",
    [
        Operation.FENCE,
        Operation.PURGE,
        Operation.COMPACT,
        Operation.STATISTICS,
        Operation.CLEAN,
        Operation.ADOPT,
    ],
)
def test_a_fence_or_a_purge_moves_the_version_and_leaves_configuration_and_as_of(
    catalog: Catalog, operation: Operation
) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, config="config-a", as_of="2024-01-01", inputs={"sales": a_cursor(5)}))

    record(catalog, lease, a_commit(2, operation=operation, config="config-b", as_of="2024-02-02"))

    known = orders(catalog)
    assert known.table_version == 2
    assert ([config.hash for config in known.configs], known.as_of) == (["config-a"], "2024-01-01")
    assert known.cursors == {"sales": a_cursor(5)}


def test_an_increment_without_facts_counts_and_moves_its_cursor(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, counts={"offered": 3, "accepted": 3}, inputs={"sales": a_cursor(1)}))

    record(
        catalog,
        lease,
        a_commit(
            2,
            operation=Operation.COUNTS,
            counts={"offered": 2, "quarantined": 2},
            inputs={"sales": a_cursor(2)},
        ),
    )

    assert orders(catalog).counts == {"offered": 5, "accepted": 3, "quarantined": 2}
    assert orders(catalog).cursors == {"sales": a_cursor(2)}


@pytest.mark.parametrize(
    ("kind", "counted"),
    [(FactDataset.kind, 5), (Quarantine.kind, 5), (Snapshot.kind, 8), (Job.kind, 8)],
)
def test_decoding_everything_again_counts_everything_again(
    catalog: Catalog, kind: NodeKind, counted: int
) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1, counts={"accepted": 3}), kind=kind)

    record(
        catalog,
        lease,
        a_commit(2, counts={"accepted": 5}, whole=True, operation=Operation.OVERWRITE),
        kind=kind,
    )

    assert orders(catalog).counts == {"accepted": counted}


def test_a_recreated_table_starts_afresh(catalog: Catalog) -> None:
    lease = take(catalog)
    old = a_commit(
        9, config="config-a", counts={"accepted": 9}, inputs={"sales": a_cursor(9)}, files=(a_file("old"),)
    )
    record(catalog, lease, old)

    new = a_commit(
        0,
        table_id="table-2",
        config="config-b",
        counts={"accepted": 1},
        inputs={"refunds": a_cursor(1)},
        files=(a_file("new"),),
    )
    record(catalog, lease, new)

    known = orders(catalog)
    assert (known.table_id, known.table_version, known.counts) == ("table-2", 0, {"accepted": 1})
    assert [config.hash for config in known.configs] == ["config-b"]
    assert (set(known.cursors), set(known.files)) == ({"refunds"}, {"new"})


def test_a_cursor_or_a_file_is_replaced_and_the_others_stay(catalog: Catalog) -> None:
    lease = take(catalog)
    record(
        catalog,
        lease,
        a_commit(
            1, inputs={"sales": a_cursor(1), "refunds": a_cursor(1)}, files=(a_file("a", 1), a_file("b", 1))
        ),
    )

    record(catalog, lease, a_commit(2, inputs={"sales": a_cursor(2, "sales-again")}, files=(a_file("b", 2),)))

    assert orders(catalog).cursors == {"sales": a_cursor(2, "sales-again"), "refunds": a_cursor(1)}
    assert orders(catalog).files == {"a": a_file("a", 1), "b": a_file("b", 2)}


def test_an_unchanged_output_moves_its_cursors_in_the_catalog_alone(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(3, inputs={"sales": a_cursor(1)}, counts={"accepted": 3}))
    before = orders(catalog)

    record_nothing_new(catalog, lease, version=2, files=(a_file("a"),), table_version=5)

    after = orders(catalog)
    assert (after.cursors, after.files) == ({"sales": a_cursor(2)}, {"a": a_file("a")})
    assert (after.table_version, after.as_of) == (5, "2024-01-02T00:00:02Z")
    assert (after.configs, after.counts, after.row_count) == (before.configs, before.counts, before.row_count)


def test_an_unchanged_output_never_goes_back_a_version(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(3))

    record_nothing_new(catalog, lease, version=2, table_version=1)

    assert orders(catalog).table_version == 3


def test_an_output_without_a_table_can_be_unchanged_and_keeps_its_cursors_at_its_first_commit(
    catalog: Catalog,
) -> None:
    lease = take(catalog)
    record_nothing_new(catalog, lease, version=1, files=(a_file("empty"),), table_version=8)
    without_table = orders(catalog)

    record(catalog, lease, a_commit(0, files=(a_file("full"),)))

    assert (without_table.table_id, without_table.table_version) == ("", -1)
    assert orders(catalog).table_version == 0
    assert (set(orders(catalog).files), set(orders(catalog).cursors)) == ({"empty", "full"}, {"sales"})


def test_an_output_is_building_while_somebody_holds_its_lease(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(1))
    record(catalog, take(catalog, dataset="payments", seconds=-1), a_commit(1, node="payments"))
    held = {name: node.building for name, node in read_view(catalog).nodes.items()}

    release_lease(catalog, lease)

    assert held == {"orders": True, "payments": False}
    assert not orders(catalog).building


def test_a_view_never_shows_half_of_a_commit(catalog: Catalog) -> None:
    lease = take(catalog)
    record(catalog, lease, a_commit(0, inputs={"sales": a_cursor(0)}))

    def write() -> None:
        for version in range(1, 40):
            record(catalog, lease, a_commit(version, inputs={"sales": a_cursor(version)}))

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        seen = [orders(catalog)]
        while not writing.done():
            seen.append(orders(catalog))
        writing.result()

    assert all(known.cursors["sales"].version == known.table_version for known in seen)


def test_a_writer_overtaken_while_it_records_leaves_all_or_nothing(catalog: Catalog) -> None:
    for attempt in range(10):
        dataset = f"orders-{attempt}"
        slow = take(catalog, "slow", dataset=dataset)

        def act(number: int, slow: Lease = slow, dataset: str = dataset) -> Lease | None:
            if number == 1:
                return take(catalog, "quick", dataset=dataset, break_others=True)
            record(catalog, slow, a_commit(1))
            return None

        recorded, taken = all_at_once(2, act)

        assert isinstance(taken, Lease)
        assert taken.must_fence
        assert (dataset in read_view(catalog).nodes) == (recorded is None)


# runs


def test_a_run_is_open_until_it_ends_once(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")
    (opened,) = read_runs(catalog, 10)

    finish_run(catalog, "run-1", "failed")

    (ended,) = read_runs(catalog, 10)
    assert (opened.ended_at, opened.status, opened.cause, opened.as_of) == (None, "", "person", "2024-01-01")
    assert ended.ended_at
    assert ended.status == "failed"
    assert opened.started_at == ended.started_at <= ended.ended_at
    with pytest.raises(ConflictError):
        finish_run(catalog, "run-1", "done")


def test_runs_are_read_newest_first_as_many_as_asked_for(catalog: Catalog) -> None:
    for number in (3, 1, 2):
        start_run(catalog, f"run-{number}", "2024-01-01", "person")

    newest = read_runs(catalog, 2)

    assert [run.run for run in newest] == ["run-2", "run-1"]


def test_what_became_of_a_task_reads_back_as_it_was(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")
    results = (
        a_result("orders"),
        a_result("payments", Status.FAILED, error="no column `amount`"),
        a_result("payments"),
    )

    for result in results:
        record_task(catalog, "run-1", result)

    assert read_tasks(catalog, "run-1") == results
    assert read_tasks(catalog, "run-2") == ()


def test_a_task_of_an_older_strandline_has_the_text_of_its_scope(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")
    record_task(catalog, "run-1", a_result())
    with catalog.writing() as connection:
        row = connection.execute(select(tasks)).one()
        measures = {name: value for name, value in row.result.items() if name not in ("scope", "covered")}
        connection.execute(update(tasks).values(scope="12 keys", result=measures))

    (result,) = read_tasks(catalog, "run-1")

    assert result == replace(a_result(), scope=Described(text="12 keys"), covered=None)


def test_an_error_text_with_characters_a_database_refuses_is_still_recorded(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")

    record_task(
        catalog, "run-1", a_result(status=Status.FAILED, error="bad byte \x00 and half \ud800 of a pair")
    )

    assert orders(catalog).last_error == "bad byte ? and half ? of a pair"


def test_a_node_that_failed_before_its_first_commit_is_shown(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")

    record_task(catalog, "run-1", a_result(status=Status.FAILED, error="no such file"))

    known = orders(catalog)
    assert (known.last_status, known.last_error) == ("failed", "no such file")
    assert (known.table_id, known.table_version, known.updated_at) == ("", -1, None)


def test_a_first_commit_after_a_failure_is_recorded_like_any_other(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")
    record_task(catalog, "run-1", a_result(status=Status.FAILED, error="no such file"))

    record(catalog, take(catalog), a_commit(0), kind=Snapshot.kind)

    assert (orders(catalog).kind, orders(catalog).table_version) == (Snapshot.kind, 0)


def test_a_status_holds_since_the_first_attempt_that_ended_like_it(catalog: Catalog) -> None:
    start_run(catalog, "run-1", "2024-01-01", "person")

    def since(status: Status) -> datetime:
        record_task(catalog, "run-1", a_result(status=status))
        known = orders(catalog)
        assert known.last_status == status
        assert known.status_since
        return known.status_since

    done, unchanged, failed, failed_again, done_again = (
        since(status) for status in (Status.DONE, Status.UNCHANGED, Status.FAILED, Status.FAILED, Status.DONE)
    )

    assert done == unchanged <= failed == failed_again <= done_again


def test_the_audit_log_keeps_what_was_done_and_when(catalog: Catalog) -> None:
    audit(catalog, "backfill", {"name": "orders", "all": True})

    with catalog.reading() as connection:
        (entry,) = connection.execute(select(audit_log)).all()
    assert (entry.verb, entry.detail) == ("backfill", {"name": "orders", "all": True})
    assert abs(entry.at - datetime.now(UTC)) < timedelta(seconds=5)
