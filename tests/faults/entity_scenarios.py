"""Small stories of entities that end in a check of every law. Each starts after the first run."""

from .evidence import require
from .fate import soon
from .kinds.entity.data import DAY, DEVICES, READINGS, ROOM, device, reading
from .kinds.entity.happenings import fill_stale, run_days_ago
from .laws import check_rest
from .scenarios import Scenario, mend, run_well
from .world import World, new_catalog


def first(world: World) -> None:
    """What every scenario starts with."""
    run_well(world)


def devices_move_and_go(world: World) -> None:
    """From room to room, to nobody and back, by a fact that loses, and the last one of a room goes."""
    world.send(DEVICES, device("a", 2, 3, -1, 2))
    run_well(world)
    world.send(DEVICES, device("a", None, 3, -1, 3), device("b", 5, 8, 0, 0))
    run_well(world)
    world.send(DEVICES, device("c", 3, 0, -1, 2, op="D"))
    run_well(world)
    world.send(DEVICES, device("c", 3, 0, -1, 90), device("a", 1, 1, -1, 91), device("b", 1, 4, 0, 2))
    run_well(world)
    check_rest(world)


def readings_of_nobody_come(world: World) -> None:
    world.send(READINGS, reading(None, 4, -1))
    run_well(world)
    world.send(READINGS, reading(None, 4, -1), reading(5, 0, None), reading(5, 0, -1))
    run_well(world)
    check_rest(world)


def days_pass_with_and_without_data(world: World) -> None:
    """Rows enter and leave windows, one that crosses a border is also changed, and a clock goes back."""
    for _ in range(3):
        world.jump(DAY)
        run_well(world)
    world.send(DEVICES, device("c", 2, 6, 2, 2), device("a", 2, 3, 3, 2), device("b", 1, 2, 1, 2))
    world.send(READINGS, reading(1, 5, 1), reading(2, 5, 3))
    world.jump(DAY)
    run_well(world)
    run_days_ago(world)
    mend(world)
    world.jump(10 * DAY)
    world.send(DEVICES, device("a", 1, 3, 3, 3))
    run_well(world)
    check_rest(world)


def a_room_is_killed_while_a_day_begins(world: World) -> None:
    for point in ("before-write", "after-write", "before-record"):
        world.jump(DAY)
        world.send(DEVICES, device("a", 2, 3, -1, world.later()), device("b", None, 0, 1, world.later()))
        world.run(fail=f"{soon(point, ROOM)}=kill")
        mend(world)
    world.jump(DAY)
    world.run(fail=f"{soon('after-write', ROOM)}=kill")
    world.use_catalog(new_catalog())
    mend(world)
    check_rest(world)


def variables_come_change_and_go(world: World) -> None:
    """Each also with a kill in the middle, and with a catalog that is lost while one is held."""
    for loud in (True, False):
        world.switches["loud"] = loud
        world.run(fail=f"{soon('after-write', ROOM)}=kill")
        mend(world)
    world.switches["least"] = 3
    run_well(world)
    world.send(DEVICES, device("a", 2, 5, -1, 2), device("f", 11, 4, -1, 1))
    run_well(world)
    world.jump(DAY)
    run_well(world)
    world.switches["loud"] = True
    world.use_catalog(new_catalog())
    mend(world)
    fill_stale(world, f"{soon('before-write', ROOM)}=kill")
    mend(world)
    fill_stale(world, f"{soon('after-write', ROOM)}=kill")
    mend(world)
    require(not world.plan().stale, "a backfill fills what is held")
    check_rest(world)


def a_variable_is_changed_back(world: World) -> None:
    """At once, it has missed nothing. After a day with data it is filled again, without being asked."""
    for late in (False, True):
        world.switches["least"] = 5
        run_well(world)
        if late:
            world.send(DEVICES, device("a", 2, 6, -1, 2))
            run_well(world)
        world.switches["least"] = 1
        run_well(world)
        check_rest(world, rebuilt=False)
    require(not world.plan().stale, "nothing is stale")
    check_rest(world)


def much_changes_at_once(world: World) -> None:
    """What other scenarios tell one after the other, in two runs: on Spark each takes seconds."""
    world.jump(DAY)
    world.send(
        DEVICES,
        device("a", 2, 3, 0, 2),
        device("b", 5, 8, 0, 0),
        device("c", None, 2, 1, 2, op="D"),
        device("d", 1, 0, 1, 2),
        device("e", 12, 0, 1, 2),
    )
    world.send(READINGS, reading(1, 5, 0), reading(None, 1, 0), reading(8, 0, None))
    run_well(world)
    world.jump(DAY)
    run_well(world)
    check_rest(world, rebuilt=False)


def a_variable_is_held_for_a_day(world: World) -> None:
    world.switches["least"] = 3
    world.jump(DAY)
    world.send(DEVICES, device("a", 2, 5, -1, 2), device("f", 11, 4, -1, 1))
    run_well(world)
    check_rest(world, rebuilt=False)


SCENARIOS: tuple[Scenario, ...] = (
    devices_move_and_go,
    readings_of_nobody_come,
    days_pass_with_and_without_data,
    a_room_is_killed_while_a_day_begins,
    variables_come_change_and_go,
    a_variable_is_changed_back,
    much_changes_at_once,
    a_variable_is_held_for_a_day,
)
