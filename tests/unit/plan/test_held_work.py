"""Held work: how much waits, what is not fresh because of it, and the one call that settles everything."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from strandline.app.planning import RunRequest, plan_request
from strandline.app.status import read_status
from strandline.model.statuses import HeldWork
from strandline.plan import plan
from strandline.plan.held_work import find_held
from tests.golden.cases import AS_OF, World, tell

SECOND_KEY = "edit key: [sale_id] => key: [sale_id, shop_id]"
OTHER_SQL = "edit sum(pieces) => max(pieces)"
ADDED_COLUMN = "edit sale_id: id => sale_id: id\\n      till: till"


def find(world: World) -> HeldWork:
    return find_held(world.project, world.observed, world.plan())


def states(world: World, name: str | None = None) -> dict[str, str]:
    statuses, _ = read_status(world.workspace, name)
    return {s.dataset: s.state for s in statuses}


def left_by(world: World, command: str) -> set[str]:
    """What the plan of a typed call leaves stale or frozen."""
    _, verb, *names, option = command.split()
    assert verb == "backfill"
    request = RunRequest(
        as_of=AS_OF, backfill=" ".join(names), only_stale={"--all": False, "--stale": True}[option]
    )
    made = plan(world.project, world.observed, plan_request(world.workspace, world.observed, request))
    return {h.node for h in (*made.stale, *made.frozen)}


def test_nothing_is_held_in_a_project_that_did_not_change() -> None:
    held = find(tell(("project small", "built")))

    assert held.nodes == ()
    assert (held.command, held.waits) == ("", False)


def test_the_rows_past_the_cursor_of_what_is_frozen_wait_since_the_first_of_them_came() -> None:
    world = tell(("project small", "built", SECOND_KEY))
    before = find(world)
    world.tell("commit sale_events append 5 rows x 3")
    table = world.tables["sale_events"]
    times = [datetime(2024, 5, 1, hour, tzinfo=UTC) for hour in range(4)]
    dated = tuple(
        replace(commit, committed_at=time) for commit, time in zip(table.commits, times, strict=True)
    )
    world.tables["sale_events"] = replace(table, commits=dated)

    held = find(world)

    assert [(h.node, h.state, h.waiting_rows, h.waiting_since) for h in held.nodes] == [
        ("sale_facts", "frozen", 15, times[1]),
        ("sale_quarantine", "stale", 0, None),
        ("sale", "frozen", 0, None),
        ("pieces", "held", 0, None),
    ]
    assert (before.waits, held.waits) == (False, True)


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ((SECOND_KEY,), "strandline backfill sale --all"),
        ((ADDED_COLUMN,), "strandline backfill sale --stale"),
        ((OTHER_SQL,), "strandline backfill pieces --stale"),
        ((SECOND_KEY, OTHER_SQL), "strandline backfill sale --all"),
        ((ADDED_COLUMN, OTHER_SQL), "strandline backfill sale pieces --stale"),
    ],
    ids=[
        "frozen",
        "stale",
        "a job",
        "a job that is written anew with its input",
        "a job that may see no change",
    ],
)
def test_one_call_settles_all_that_is_held_with_no_more_names_than_it_needs(
    changes: tuple[str, ...], command: str
) -> None:
    world = tell(("project small", "built", *changes))

    held = find(world)

    assert held.command == command
    assert left_by(world, held.command) == set()


def test_a_call_of_two_names_settles_two_changes_and_either_name_alone_does_not() -> None:
    world = tell(
        ("project shop", "built", "edit max(pieces) => min(pieces)", "edit type: int => type: bigint")
    )

    command = find(world).command
    _, _, *names, option = command.split()

    assert left_by(world, command) == set()
    for name in names if len(names) > 1 else ():
        assert left_by(world, f"strandline backfill {name} {option}"), f"{name} alone would do"


def test_stale_partitions_are_counted_and_settled_by_one_call() -> None:
    world = tell(
        (
            "project chain",
            "built",
            "partitions cold_blocks 0-10 10-20 20-30",
            "edit codec: zstd => codec: lz4",
        )
    )
    world.tell("partitions cold_blocks 10-20")

    held = find(world)

    assert [(h.node, h.waiting_rows, h.partitions) for h in held.nodes] == [
        ("cold_blocks", 40, ("0-10", "20-30")),
        ("days", 0, ()),
    ]
    assert held.command == "strandline backfill cold_blocks --stale"
    assert left_by(world, held.command) == set()


def test_what_reads_something_held_is_behind_and_says_what_holds_it() -> None:
    world = tell(
        ("project shop", "built", "edit max(pieces) => min(pieces)", "edit type: int => type: bigint")
    )
    fresh = states(tell(("project shop", "built")))

    statuses, held = read_status(world.workspace)

    by_dataset = {s.dataset: s for s in statuses}
    waiting = {h.node for h in held.nodes}
    assert set(fresh.values()) == {"fresh"}
    for node in world.project.nodes:
        reads_held = any(i.dataset in waiting or by_dataset[i.dataset].held_by for i in node.inputs)
        assert (by_dataset[node.name].state == "fresh") is (node.name not in waiting and not reads_held), (
            node.name
        )
    behind = [s for s in statuses if s.state == "behind"]
    assert behind
    assert all(s.held_by and all(f"`{name}`, which is " in s.reason for name in s.held_by) for s in behind)


def test_the_status_of_one_name_tells_what_is_held_above_it_and_nothing_else() -> None:
    world = tell(("project shop", "built", "edit max(pieces) => min(pieces)"))
    workspace = world.workspace

    _, own = read_status(workspace, "best")
    _, other = read_status(workspace, "price")

    assert [h.node for h in own.nodes] == ["best"]
    assert other.nodes == ()
