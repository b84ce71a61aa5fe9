"""Small stories of what is published that end in a check of every law. Each starts after the first run."""

from strandline.catalog import read_view
from strandline.ingest.inbox import list_inbox

from .evidence import require
from .fate import soon
from .kinds.trigger.kind import ALERT, EDITED
from .kinds.view.data import TRADES, VIEW, trade
from .laws import check_always, check_rest
from .scenarios import Scenario, mend, run_well
from .world import World, new_catalog


def first(world: World) -> None:
    """What every scenario starts with."""
    run_well(world)


def trades_cross_the_limits(world: World) -> None:
    """One goes down slowly, one comes back, one is deleted, and each crosses more than once."""
    for quantity in (5, 3, 9, 5, 1):
        world.send(TRADES, trade("a", quantity, world.later()), trade("b", 10 - quantity, world.later()))
        run_well(world)
    world.send(TRADES, trade("a", 9, world.later()), trade("c", 7, world.later()))
    run_well(world)
    world.send(TRADES, trade("c", None, world.later(), "D"))
    run_well(world)
    check_rest(world)


def processes_die_and_catalogs_are_lost(world: World) -> None:
    """Whatever is known is found again in the tables."""
    for node in ("trade", "trade_changes", ALERT, VIEW, "large_changes"):
        for quantity in (9, 3):
            world.send(TRADES, trade("a", quantity, world.later()), trade("d", 12 - quantity, world.later()))
            world.run(fail=f"{soon('after-write', node)}=kill")
            check_always(world)
            if quantity == 3:
                world.use_catalog(new_catalog())
            mend(world)
    check_rest(world)


def posts_outlive_deaths_and_are_forgotten(world: World) -> None:
    """A post is received once, whenever its task dies, also after everything received before is forgotten."""
    points = tuple(
        f"{when}-{what}" for what in ("prepare", "write", "record") for when in ("before", "after")
    )
    for number, point in enumerate((*points, *points)):
        world.send(TRADES, trade("a", 3 + number % 5, world.later()))
        world.send(TRADES, trade("b", 9 - number % 5, world.later()), trade("c", 7, world.later()))
        world.run(fail=f"{soon(point, TRADES.source)}=kill")
        check_always(world)
        if number == len(points):
            world.use_catalog(new_catalog())
        if number % 3 == 2:
            world.maintain()
        mend(world)
    world.send(TRADES, trade("d", 9, world.later()))
    run_well(world)
    inbox, sent = world.lake.inbox(TRADES.source), len(list((world.folder / TRADES.folder).iterdir()))
    require(world.post(TRADES, sent - 1).duplicate, "what was just received is remembered")
    world.settle_down()
    require(not list_inbox(inbox), "what is received does not wait", list_inbox(inbox))
    (entry,) = read_view(world.catalog).nodes[TRADES.source].files.values()
    rows = len(world.rows(TRADES.source))
    require(entry.rows == rows, "one entry counts all that was received", entry, rows)
    check_rest(world)


def a_trigger_is_edited(world: World) -> None:
    """What was on by the old condition is off until the new one fires. So it is without a new trade."""
    world.send(TRADES, trade("a", 7, world.later()), trade("b", 9, world.later()))
    run_well(world)
    world.switches["edited_fire"] = 8
    run_well(world)
    world.send(TRADES, trade("a", 9, world.later()), trade("b", 10, world.later()))
    run_well(world)
    second = [(row["event_type"], row["key"], row["quiet"]) for row in _events(world, revision=2)]
    require(second == [("MATCH", "a", False)], "the state of an old revision does not count", second)
    check_rest(world)


def a_trigger_is_removed_and_put_back(world: World) -> None:
    """What changed meanwhile sets its state and is told to nobody."""
    world.switches["edited_fire"] = 0
    world.send(TRADES, trade("a", 2, world.later()))
    run_well(world)
    world.switches["edited_fire"] = 6
    run_well(world)
    world.send(TRADES, trade("a", 9, world.later()))
    run_well(world)
    events = [(row["event_type"], row["quiet"]) for row in _events(world, key="a")]
    require(events == [("MATCH", False), ("UNMATCH", True), ("MATCH", False)], "quiet while away", events)
    check_rest(world)


def a_view_is_edited(world: World) -> None:
    world.switches["least"] = 4
    world.send(TRADES, trade("d", 4, world.later()))
    run_well(world)
    world.switches["least"] = 7
    run_well(world)
    check_rest(world)


def much_changes_at_once(world: World) -> None:
    """What other scenarios tell one after the other, in two runs: on Spark each takes seconds."""
    world.send(
        TRADES, trade("a", 5, world.later()), trade("b", 9, world.later()), trade("c", 1, world.later())
    )
    run_well(world)
    world.send(
        TRADES,
        trade("a", 9, world.later()),
        trade("b", None, world.later(), "D"),
        trade("c", 8, world.later()),
    )
    run_well(world)
    check_rest(world)


def _events(world: World, **wanted: object) -> list[dict[str, object]]:
    rows = sorted(world.rows(EDITED), key=lambda row: (row["revision"], row["version"], row["position"]))
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


SCENARIOS: tuple[Scenario, ...] = (
    trades_cross_the_limits,
    processes_die_and_catalogs_are_lost,
    posts_outlive_deaths_and_are_forgotten,
    a_trigger_is_edited,
    a_trigger_is_removed_and_put_back,
    a_view_is_edited,
    much_changes_at_once,
)
