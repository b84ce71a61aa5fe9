"""Faults of live processes: stopped, killed from below, met by another, cut off from the database.

Each ends in the correct state, or with a refusal that says what is wrong and what to do. The next run then
ends in the correct state.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.app.workspace import open_workspace
from strandline.catalog import list_leases
from strandline.lake.lock import LOCK_FILE, find_lock_holder
from strandline.lake.log import read_entries
from strandline.model.commits import Operation
from tests.contract.postgres import find_binaries
from tests.faults.processes import (
    YAML,
    CutAtCommit,
    OwnPostgres,
    all_faults,
    end,
    facts,
    held_at,
    lake_of,
    own_postgres,
    start,
    wait_until,
)
from tests.harness import TestProject

pytestmark = [
    pytest.mark.spark,
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc"),
    all_faults,
]

FACTS = {("a", "x"), ("b", "x"), ("b", "y")}
ITEMS = {("a", "x"), ("b", "y")}


@pytest.fixture
def project(tmp_path: Path) -> TestProject:
    made = TestProject.create(
        tmp_path, YAML.replace("project: register", "project: register\n    settings: {lease_seconds: 5}")
    )
    made.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1}, {"id": "b", "name": "x", "at": 1})
    made.lines("data/2.jsonl", {"id": "b", "name": "y", "at": 2})
    return made


def assert_right(project: TestProject) -> None:
    """Everything that was sent, once; nothing waits."""
    assert facts(project) == FACTS
    assert project.rows("item", "id", "name") == ITEMS
    assert project.plan().tasks == ()
    project.assert_verified()


def assert_next_run_is_right(project: TestProject) -> str:
    code, out, err = end(start(project))
    assert code == 0, out + err
    assert_right(project)
    return out


def jvm_of(project: TestProject) -> int:
    """The JVM that holds the lake."""
    pid = find_lock_holder(lake_of(project))
    assert pid is not None
    return pid


def writes_of(project: TestProject, node: str) -> list[Operation]:
    """What was committed to a table, fences left out."""
    entries = read_entries(str(lake_of(project) / node), -1)
    return [
        e.metadata.operation for e in entries if e.metadata and e.metadata.operation is not Operation.FENCE
    ]


@pytest.mark.parametrize("point", ["before-write", "before-prepare"])
def test_a_jvm_killed_under_a_run_is_told_and_the_next_run_ends_right(
    project: TestProject, point: str
) -> None:
    """Nobody knows what a JVM that is gone has done; the table's log does."""
    with held_at(project, f"{point}:item_facts") as held:
        os.kill(jvm_of(project), signal.SIGKILL)
        held.let_go()

        code, out, err = end(held.process)

    assert code == 1, out + err
    assert "[spark-lost]" in out, out
    assert "Run again" in out
    assert_next_run_is_right(project)


def test_of_two_runs_at_once_the_second_waits_and_does_nothing_again(project: TestProject) -> None:
    """It waits for whoever holds the lake, before Spark is started, and then plans again."""
    with held_at(project, "before-record:item") as held:
        second = start(project)
        assert second.stderr is not None
        assert "Waiting for the lake" in second.stderr.readline()
        held.let_go()

        first_code, first_out, first_err = end(held.process)
        code, out, err = end(second)

    assert (first_code, code) == (0, 0), first_out + first_err + out + err
    assert {node: len(writes_of(project, node)) for node in ("events", "item_facts", "item")} == {
        "events": 1,
        "item_facts": 1,
        "item": 1,
    }
    assert_right(project)


def lease_ran_out(project: TestProject, node: str) -> bool:
    with open_workspace(project.folder) as workspace:
        return any(
            lease.dataset == node and not lease.returned and not lease.held
            for lease in list_leases(workspace.catalog)
        )


@pytest.mark.parametrize("fate", ["resumed", "killed"])
def test_a_run_stopped_past_its_lease_keeps_the_lake_until_it_ends(project: TestProject, fate: str) -> None:
    """L7: on plain files the JVM's lock outlasts the lease, so nobody overtakes a writer that may wake.

    Other processes report who holds the lake.
    """
    with held_at(project, "before-write:item_facts") as held:
        held.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: lease_ran_out(project, "item_facts"), "the lease to run out")

        code, _, err = end(start(project))

        assert code == 3, err
        assert "[lake-held]" in err
        assert f"process {held.process.pid} on " in err
        assert "or stop it" in err
        held.let_go()
        held.process.send_signal(signal.SIGCONT if fate == "resumed" else signal.SIGKILL)
        ended, out, err = end(held.process)

    assert ended == (0 if fate == "resumed" else -signal.SIGKILL), out + err
    if fate == "resumed":
        assert_right(project)
    told = assert_next_run_is_right(project)
    assert writes_of(project, "item_facts") == writes_of(project, "item_facts")[:1], "written once"
    assert fate == "killed" or "item_facts" not in told, "it was done"


@pytest.mark.parametrize("point", ["before-write", "before-record"])
def test_a_stopped_run_whose_lock_someone_removed_is_overtaken_and_changes_nothing(
    project: TestProject, point: str
) -> None:
    """L7: without the lock another process takes the lake.

    Table and catalog refuse the first when it wakes.
    """
    with held_at(project, f"{point}:item_facts") as held:
        held.process.send_signal(signal.SIGSTOP)
        (lake_of(project) / LOCK_FILE).unlink()

        told = assert_next_run_is_right(project)

        assert ("fenced off a writer that did not end cleanly" in told) is (point == "before-record"), (
            "a table that is there is fenced"
        )
        published = {node: writes_of(project, node) for node in ("events", "item_facts", "item")}
        held.let_go()
        held.process.send_signal(signal.SIGCONT)
        code, out, err = end(held.process)

    assert code == 0, out + err
    assert "unchanged" in out, "what it was about to do was done"
    assert {node: writes_of(project, node) for node in published} == published
    assert len(published["item_facts"]) == 1
    assert_right(project)


def test_a_jvm_that_outlives_its_python_keeps_the_lake_and_is_found(project: TestProject) -> None:
    """It may be writing still. Once it has ended, a run fences it off and does its work."""
    with held_at(project, "after-write:item_facts") as held:
        jvm = jvm_of(project)
        os.kill(jvm, signal.SIGSTOP)
        try:
            held.process.kill()
            held.process.wait()

            code, _, err = end(start(project))

            assert code == 3, err
            assert "[lake-held]" in err
            assert re.search(rf"process {held.process.pid} on \S+, since \d{{4}}-", err), err
            assert jvm_of(project) == jvm, "`doctor` names it"
        finally:
            os.kill(jvm, signal.SIGCONT)

    assert "fenced off a writer that did not end cleanly" in assert_next_run_is_right(project)
    assert len(writes_of(project, "item_facts")) == 1


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnPostgres]:
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no Postgres server under /usr/lib/postgresql (Debian: apt install postgresql)")
    with own_postgres(binaries) as server:
        monkeypatch.setenv("STRANDLINE_CATALOG", server.address)
        yield server


def test_a_postgres_restarted_in_the_middle_of_a_run_costs_nothing(
    project: TestProject, postgres: OwnPostgres
) -> None:
    """Every connection is gone, and what was committed is not: the run takes new ones and ends well."""
    with held_at(project, "before-record:item_facts") as held:
        postgres.restart()
        held.let_go()

        code, out, err = end(held.process)

    assert code == 0, out + err
    assert_right(project)


def test_a_postgres_that_crashes_and_stays_away_ends_the_run_and_the_next_one_ends_right(
    project: TestProject, postgres: OwnPostgres
) -> None:
    """The commit stands in the table and the catalog was not told."""
    with held_at(project, "before-record:item_facts") as held:
        postgres.stop()
        held.let_go()

        code, out, err = end(held.process)

    assert code == 3, out + err
    assert "[catalog-unreachable]" in err
    assert "Check that Postgres runs" in err
    postgres.start()
    assert "found 1 commit(s) of ours" in assert_next_run_is_right(project)
    assert len(writes_of(project, "item_facts")) == 1


@pytest.mark.parametrize("committed", [True, False], ids=["answer-lost", "never-arrived"])
def test_a_connection_cut_during_commit_loses_and_doubles_nothing(
    project: TestProject, postgres: OwnPostgres, committed: bool
) -> None:
    """The run cannot know whether the catalog was updated.

    The next run finds out, from table and catalog alone.
    """
    with (
        CutAtCommit(postgres.port, b"dataset_cursors", committed=committed) as between,
        held_at(project, "before-record:item_facts", STRANDLINE_CATALOG=between.address) as held,
    ):
        between.arm()
        held.let_go()

        code, out, err = end(held.process)

    assert between.cut.is_set()
    assert code == 1, out + err
    assert "[catalog-unreachable]" in out
    told = assert_next_run_is_right(project)
    assert ("found 1 commit(s) of ours" in told) is not committed, told
    assert len(writes_of(project, "item_facts")) == 1
