"""The commit protocol under failures, in real runs: the next run ends in the correct state.

Nothing is lost or doubled, whatever fails.
"""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from strandline.app.clock import now
from strandline.app.planning import RunRequest, make_plan
from strandline.app.run import make_desk, run_name
from strandline.app.workspace import Workspace, open_workspace
from strandline.catalog import acquire_lease, find_node, renew_leases, start_run
from strandline.dispatch.attempt import attempt
from strandline.dispatch.desk import Desk
from strandline.dispatch.failpoints import POINTS, hits
from strandline.dispatch.run import execute
from strandline.lake import writes
from strandline.lake.log import list_versions
from strandline.model.commits import Operation
from strandline.model.errors import FencedError, OutsideError
from strandline.model.plan import Plan, Status
from tests.faults.faulty import NODES, Fail, Faulty, append_by_hand, message, standing_at
from tests.harness import result_of

pytestmark = [pytest.mark.spark, pytest.mark.faults]

ROUNDS = (
    # Nothing is committed yet where these fail.
    "before-lease:names",
    "after-lease:item_facts",
    "before-settle:item",
    "after-settle:item_facts",
    "before-pin:names",
    "after-pin:events",
    "before-prepare:item_facts",
    "after-prepare:item",
    "before-write:item_facts",
    # From here on the table has the commit and the catalog does not. The lease is not given back, so the next
    # run fences.
    "before-confirm:item_facts",
    "before-fence:item_facts",
    "after-fence:item_facts",
    "after-confirm:events",
    "before-record:item_facts",
    "before-confirm:names",
    "after-record:item",
)
NOT_OF_A_RUN = ("compact", "vacuum", "rebuild", "swap", "migrate", "fill", "send")
SURVIVED = ("after-write:item_facts", "before-purge:names", "after-purge:names")
"""The task ends well although something failed: the commit stands, or only hidden rows wait."""


def test_a_failure_at_any_point_is_mended_by_the_next_run(
    project: Faulty, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message per round: each run fails at the next point, and the last run does not fail."""
    monkeypatch.setenv(
        "STRANDLINE_THRESHOLDS", "named_keys=0"
    )  # as if there were many: one that vanishes is buried, then purged
    before = dict(hits)
    for nth, point in enumerate((*ROUNDS, *SURVIVED)):
        project.send(
            message(f"m{nth}", nth, f"n{nth % 3}"), message("mover", nth, f"place{nth}")
        )  # `mover` leaves a key behind: a purge
        fail(f"{point}=raise")

        outcome = project.run(ok=False)

        name, _, node = point.partition(":")
        result = result_of(outcome, node)
        if point in SURVIVED:
            assert outcome.exit_code == 0, [r.error for r in outcome.results]
            assert any(f"failpoint {name} of {node}" in note for note in result.notes), (point, result.notes)
        else:
            assert result.status is Status.FAILED, (point, result)
            assert f"failpoint {name} of {node}" in result.error
            blocked = {r.node for r in outcome.results if r.status is Status.BLOCKED}
            assert blocked == set(NODES[NODES.index(node) + 1 :]) | (
                {"item_quarantine"} if node in NODES[:2] else set()
            )
        facts = project.query("select _source_position from item_facts")
        assert len(facts) == len({str(f) for f in facts}), f"{point} doubled a fact"

    fail("")
    project.send(message("mover", 100, "home"))
    project.run()

    project.assert_right()
    assert project.query("select count(*) from names where name like 'place%'") == [(0,)]
    missed = [
        point for point in POINTS if hits[point] == before.get(point, 0) and not point.endswith(NOT_OF_A_RUN)
    ]
    assert not missed, f"no run passed {missed}"


def test_a_commit_whose_answer_was_lost_counts_in_the_same_run_and_is_not_written_again(
    project: Faulty, fail: Fail
) -> None:
    """Step 5: confirm by the log, after any exception."""
    project.send(message("e", 1, "x"))
    fail(",".join(f"after-write:{node}=raise" for node in NODES))

    outcome = project.run()

    assert {r.node: r.status for r in outcome.results if r.node in NODES} == dict.fromkeys(NODES, Status.DONE)
    assert all(
        any("although the answer was lost" in note for note in result_of(outcome, n).notes) for n in NODES
    )
    fail("")
    assert project.run().results == ()
    project.assert_right(verified=False)


def open_desk(workspace: Workspace, session: SparkSession, holder: str) -> tuple[Desk, Plan]:
    """What a run of another process would work with."""
    plan, observed = make_plan(workspace, RunRequest())
    name = run_name(now())
    start_run(workspace.catalog, name, plan.as_of.isoformat(), "run")
    return replace(
        make_desk(workspace, observed, plan, name, lambda: session, RunRequest()), holder=holder
    ), plan


def test_a_writer_that_lost_its_lease_changes_nothing_visible(
    project: Faulty, fail: Fail, session: SparkSession, tmp_path: Path
) -> None:
    """L7: A stops before it writes, B fences and does A's work.

    A's write has an old token, so it is skipped and reported as fenced.
    """
    project.send(message("e", 1, "x"))
    project.run(RunRequest(select="events"))
    with open_workspace(project.folder) as workspace:
        (zombie, plan), (taker, _) = open_desk(workspace, session, "A"), open_desk(workspace, session, "B")
        task = next(t for t in plan.tasks if t.node == "item_facts")
        with standing_at("before-write:item_facts", fail, tmp_path, lambda: attempt(zombie, task)) as stopped:
            results = execute(taker, plan, lambda _: None, lambda _: None)

        with pytest.raises(FencedError):
            stopped.result()

        assert all(r.status in (Status.DONE, Status.UNCHANGED) for r in results), [r.error for r in results]
        notes = next(r.notes for r in results if r.node == "item_facts")
        assert any("fenced off a writer that did not end cleanly" in note for note in notes)
        ours = [e.metadata for e in project.entries("item_facts") if e.metadata]
        assert [m.operation for m in ours[-2:]] == [Operation.FENCE, Operation.APPEND]
        assert {m.run for m in ours[-2:]} == {taker.run}
        project.assert_right(verified=False)

        again = attempt(zombie, task)

        assert again.status is Status.UNCHANGED, (
            "planned afresh it finds the work done, and does not write it twice"
        )
    project.assert_right(verified=False)


def test_a_lease_taken_over_is_not_recorded_for_by_its_former_holder(
    project: Faulty, session: SparkSession
) -> None:
    """L7 for the catalog, and for the table with nothing but the primitives."""
    with open_workspace(project.folder) as workspace:
        token = max(e.metadata.token for e in project.entries("names") if e.metadata)
        lost = acquire_lease(workspace.catalog, "names", "A", 60, token, False)
        taken = acquire_lease(workspace.catalog, "names", "B", 60, token, True)
        assert (lost.must_fence, taken.must_fence, taken.token) == (False, True, lost.token + 1)
        writes.commit_nothing(
            session, workspace.lake, writes.Ticket(dataset="names", token=taken.token, metadata="")
        )
        before, rows = list_versions(workspace.lake.table("names")), project.rows("names")

        own = session.read.format("delta").load(workspace.lake.table("names"))
        writes.overwrite(
            own.limit(0), workspace.lake, writes.Ticket(dataset="names", token=lost.token, metadata="")
        )

        assert list_versions(workspace.lake.table("names")) == before
        assert project.rows("names") == rows


@pytest.mark.parametrize("node", ["item_facts", "item", "names"])
def test_a_foreign_commit_is_shown_in_the_plan_and_the_node_is_rebuilt(
    project: Faulty, session: SparkSession, node: str
) -> None:
    """L13, L2."""
    version = append_by_hand(session, project, node)

    planned = next(t for t in project.plan().tasks if t.node == node)

    assert planned.cause == "gap"
    assert f"version {version} (WRITE)" in planned.reason
    outcome = project.run()
    assert result_of(outcome, node).status is Status.DONE
    project.assert_right(verified=node == "names")


def test_a_foreign_commit_is_not_forgotten_when_its_repair_fails(
    project: Faulty, session: SparkSession, fail: Fail
) -> None:
    """A lost answer, then a foreign commit, then a fence and a failure.

    The catalog must not move past what is not repaired.
    """
    project.send(message("e", 1, "z"))
    fail("before-record:names=raise")
    project.run(ok=False)
    append_by_hand(session, project, "names")
    fail("after-prepare:names=raise")
    project.run(ok=False)

    planned = next(t for t in project.plan().tasks if t.node == "names")

    assert planned.cause == "gap"
    fail("")
    project.run()
    project.assert_right(verified=False)
    project.assert_verified("names")


def test_a_foreign_commit_in_the_middle_of_a_task_is_noticed_and_repaired(
    project: Faulty, session: SparkSession, fail: Fail, tmp_path: Path
) -> None:
    """Step 5 checks every version between the pinned one and ours.

    Delta accepts a write that began after the other ended.
    """
    project.send(message("e", 1, "z"))
    project.run(RunRequest(select="events item"))

    with standing_at("before-write:names", fail, tmp_path, lambda: project.run(ok=False)) as running:
        append_by_hand(session, project, "names")

    outcome = running.result()
    assert (result_of(outcome, "names").status, result_of(outcome, "names").slug) == (
        Status.FAILED,
        "foreign-commit",
    )
    assert [t.cause for t in project.plan().tasks] == ["gap"]
    project.run()
    project.assert_right(verified=False)
    project.assert_verified("names")


def test_a_table_deleted_and_made_again_by_someone_else_is_a_gap_and_rebuilt(
    project: Faulty, session: SparkSession
) -> None:
    """L9: a cursor is a table's id and version; the readers of a new table start anew."""
    shutil.rmtree(project.table("item"))
    session.createDataFrame([(1, "stranger")], "n int, id string").write.format("delta").save(
        project.lake.table("item")
    )

    plan = project.plan()

    assert next((t.node, t.cause, t.overwrite) for t in plan.tasks) == ("item", "gap", True)
    project.run()
    project.assert_right()


@pytest.mark.parametrize("node", ["item_facts", "item"])
def test_a_table_deleted_under_a_task_is_never_half_of_what_it_was(
    project: Faulty, fail: Fail, tmp_path: Path, node: str
) -> None:
    """What was to be added, or replaced, is not taken for all there is."""
    project.send(message("e", 1, "z"))

    with standing_at(f"before-write:{node}", fail, tmp_path, lambda: project.run(ok=False)) as running:
        shutil.rmtree(project.table(node))

    assert result_of(running.result(), node).status is Status.FAILED
    assert node in {t.node for t in project.plan().tasks}
    project.run()
    project.assert_right()


def test_tables_that_are_gone_are_made_again(project: Faulty) -> None:
    """Of a derived table nothing is lost; a source receives its files again."""
    shutil.rmtree(project.table("names"))
    shutil.rmtree(project.table("item_facts"))

    project.run()

    project.assert_right(verified=False)
    assert project.rows("names") == {("x", 2), ("y", 2)}

    shutil.rmtree(project.table("events"))
    project.run()

    assert project.rows("names") == {("x", 2), ("y", 2)}
    project.assert_right()


def test_a_lost_catalog_is_filled_from_the_tables(project: Faulty) -> None:
    """L6: what was received is not received again, and nothing is computed anew that the tables have."""
    rows, versions = project.rows("names"), {node: len(project.entries(node)) for node in NODES}
    for file in (project.folder / ".strandline").glob("catalog.db*"):
        file.unlink()

    outcome = project.run()

    assert {r.node: r.status for r in outcome.results} == dict.fromkeys(
        (*NODES, "item_quarantine"), Status.UNCHANGED
    )
    assert {node: len(project.entries(node)) - 1 for node in NODES} == versions, "a fence each, and no more"
    assert project.rows("names") == rows
    project.send(message("e", 1, "z"))
    assert result_of(project.run(), "item_facts").rows_read == 1
    project.assert_right()


def test_a_table_restored_by_hand_is_rebuilt_and_its_readers_follow(
    project: Faulty, session: SparkSession
) -> None:
    session.sql(f"RESTORE TABLE delta.`{project.lake.table('item')}` TO VERSION AS OF 0")
    assert project.plan().tasks[0].cause == "gap"

    project.run()

    assert project.rows("names") == {("x", 2), ("y", 2)}
    project.assert_right()


def test_compaction_by_hand_makes_nobody_behind(project: Faulty, session: SparkSession) -> None:
    """Commits that change no rows are nothing to a reader, also for the increment that comes after."""
    for node in NODES:
        session.sql(f"OPTIMIZE delta.`{project.lake.table(node)}`")

    assert project.plan().tasks == ()
    project.send(message("e", 1, "x"))
    assert result_of(project.run(), "item_facts").rows_read == 1
    project.assert_right()


def test_a_catalog_out_of_reach_for_a_moment_does_not_end_the_heartbeat(
    project: Faulty, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that is not renewed runs out under its holder."""
    beats: list[int] = []

    def renew(*given: object) -> int:
        beats.append(1)
        if len(beats) == 1:
            raise OutsideError("the catalog is busy")
        return renew_leases(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("strandline.dispatch.run.renew_leases", renew)
    with open_workspace(project.folder) as workspace:
        short = replace(workspace.project, settings=replace(workspace.project.settings, lease_seconds=1))
        desk, _ = open_desk(replace(workspace, project=short), session, "A")
        acquire_lease(workspace.catalog, "names", "A", 60, 0, True)
        from strandline.dispatch.run import Heartbeat

        with Heartbeat(desk):
            for _ in range(500):
                if len(beats) > 2:
                    break
                threading.Event().wait(0.01)

        assert len(beats) > 2
        assert find_node(workspace.catalog, "names") is not None
