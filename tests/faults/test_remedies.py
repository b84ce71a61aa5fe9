"""Errors of runs that meet another run, or whose tables change during the run. No Spark.

After the remedy is followed, a run ends in the correct state.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.catalog import acquire_lease, finish_run, read_runs, release_lease
from strandline.lake.location import Lake
from strandline.model.errors import ConflictError, OutsideError
from strandline.model.plan import TaskResult

from . import table_log
from .fate import Fate, soon
from .kinds.snapshot.data import ITEMS, item
from .laws import check_rest
from .scenarios import first
from .world import World

pytestmark = pytest.mark.faults


@pytest.fixture
def world(worlds: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """After its first run, and with something new to read."""
    fate = Fate()
    fate.install(monkeypatch)
    world = World(worlds / "world", fate)
    first(world)
    world.send(ITEMS, item("d", 5, "new"), item("a", 6, "y"))
    return world


def failed(world: World, fail: str = "") -> dict[str, TaskResult]:
    """The tasks of a run that failed by themselves, by node."""
    outcome = world.run(fail=fail)
    assert outcome is not None
    return {r.node: r for r in outcome.results if r.error and r.slug != "blocked"}


def run_again(world: World) -> None:
    """The remedy of most of these: one run settles everything that the error left undone."""
    outcome = world.run()
    assert outcome is not None
    assert [r.error for r in outcome.results if r.error] == []
    assert world.plan().tasks == ()
    check_rest(world, rebuilt=False)


def meanwhile(world: World, point: str, node: str, happening: Callable[[], object]) -> str:
    """A failpoint at which something happens, once."""
    world.fate.meanwhile = happening
    return f"{soon(point, node)}=call"


def test_a_lease_that_another_holds_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Lake, "one_writer", False
    )  # as in an object store: the leases alone keep writers apart
    lease = acquire_lease(world.catalog, "names", "another:1", 60, 0, True)

    refused = failed(world)

    assert [(node, r.slug) for node, r in refused.items()] == [("names", "lease-held")]
    assert "Wait for it to end; if it was killed, the lease runs out by itself." in refused["names"].error
    release_lease(world.catalog, lease)
    run_again(world)


def test_a_lease_of_one_that_was_killed_runs_out_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lake, "one_writer", False)
    acquire_lease(world.catalog, "names", "another:1", 60, 0, True)
    assert failed(world)["names"].slug == "lease-held"
    acquire_lease(world.catalog, "names", "another:1", -1, 0, True)

    run_again(world)


def test_a_task_that_lost_every_race_is_done_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    races: list[int] = []
    require_life = table_log.between

    def race(dataset: str, token: int) -> None:
        require_life(dataset, token)
        if dataset == "names" and token and len(races) < 3:
            races.append(token)
            world.compact("names")

    monkeypatch.setattr(table_log, "between", race)

    lost = failed(world)

    assert [(node, r.slug) for node, r in lost.items()] == [("names", "conflict")]
    assert len(races) == 3
    assert "run again" in lost["names"].error
    run_again(world)


@pytest.mark.parametrize("node", ["item_facts", "item", "names", "told"])
def test_a_table_deleted_under_its_task_is_rebuilt_by_the_next_run(world: World, node: str) -> None:
    fail = meanwhile(world, "before-write", node, lambda: shutil.rmtree(world.lake.table(node)))

    refused = failed(world, fail)

    assert refused[node].slug == "table-replaced"
    assert f"Run again: it is shown in the plan, and `{node}` is rebuilt." in refused[node].error
    assert node in [task.node for task in world.plan().tasks]
    run_again(world)


def test_a_source_deleted_under_its_task_comes_back_as_the_messages_say(world: World) -> None:
    fail = meanwhile(world, "before-write", "events", lambda: shutil.rmtree(world.lake.table("events")))
    assert failed(world, fail)["events"].slug == "table-replaced"

    with pytest.raises(OutsideError) as refused:
        world.run()

    assert refused.value.slug == "source-lost"
    away = re.search(r"move `(.+)` away and run", refused.value.remedy)
    assert away
    shutil.move(away[1], world.folder / "away")
    run_again(world)


def test_an_input_that_another_run_wrote_anew_is_read_whole_by_the_next_run(world: World) -> None:
    def write_anew() -> None:
        """Another run decodes everything again, and ends before it comes to the readers."""
        assert world.backfill("item_facts", fail=f"{soon('before-lease', 'item')}=kill") is None

    refused = failed(world, meanwhile(world, "before-lease", "item_facts", write_anew))

    assert [(node, r.slug) for node, r in refused.items()] == [("item", "written-anew")]
    assert "Run `strandline run` again: it recomputes `item` from all of it." in refused["item"].error
    run_again(world)


def test_a_run_that_was_closed_by_someone_else_is_followed_by_one_that_finds_nothing_lost(
    world: World,
) -> None:
    def close() -> None:
        finish_run(world.catalog, read_runs(world.catalog, 1)[0].run, "failed")

    with pytest.raises(ConflictError) as refused:
        world.run(fail=meanwhile(world, "before-write", "names", close))

    assert refused.value.slug == "run-not-open"
    assert "Run again" in refused.value.remedy
    run_again(world)
