"""Small stories of timelines that end in a check of every law. Each starts after the first run."""

from functools import partial

from strandline.app.planning import RunRequest

from .evidence import require
from .fate import soon
from .kinds.timeline.data import DAILY, HISTORY, TRADES, trade
from .kinds.valuation.data import MARKS, business_date, mark
from .kinds.valuation.happenings import run_batches
from .laws import check_always, check_rest
from .scenarios import Scenario, mend, run_well, run_while
from .world import World, new_catalog

_DAY = 86_400


def first(world: World) -> None:
    """What every scenario starts with."""
    run_well(world)


def the_past_of_trades_changes(world: World) -> None:
    """A trade goes on, one is in the past, one moves, one is the last of its key, two change places."""
    world.send(TRADES, trade("t5", 2, "R", "a", 3, 1), trade("t6", 3, "R", "a", 3, 2))
    run_well(world)
    world.send(TRADES, trade("t5", 4, "R", "a", 3, 1))
    run_well(world)
    world.send(TRADES, trade("t7", 5, "P", "a", 1, 2), trade("t3", 5, "Q", "b", 2, 2))
    run_well(world)
    world.send(TRADES, trade("t2", 6, "P", "b", 1, 3, op="D"))
    run_well(world)
    world.send(TRADES, trade("t2", 7, "P", "b", 0, 3))
    run_well(world)
    check_rest(world)


def prices_and_dates_change(world: World) -> None:
    """A price up to the next one, a date that is due, a holiday declared late, a clock that goes back."""
    world.send(MARKS, mark("a", 1, 12, 2))
    run_well(world)
    before = world.fate.clock
    world.jump(_DAY)
    run_well(world)
    world.send(MARKS, business_date(2, 3, op="D"), business_date(4, 3), mark("b", 4, 7, 3))
    run_well(world)
    world.send(MARKS, mark("b", 2, 21, 4))
    world.run(RunRequest(as_of=before))
    mend(world)
    check_rest(world)


def a_key_fails_and_is_mended(world: World) -> None:
    """Meanwhile its prices change, a date becomes due, and the rent of others is missing."""
    world.send(TRADES, trade("t5", 2, "P", "a", 2, -9))
    run_well(world, exit_code=1)
    world.send(MARKS, mark("a", 1, 15, 2), mark("b", 2, 16, 2))
    run_well(world)
    world.jump(_DAY)
    run_well(world)
    world.send(TRADES, trade("t5", 3, "P", "a", 2, -1))
    run_well(world)
    world.send(MARKS, mark("x", 0, None, 4, op="D"), mark("x", 2, 3, 4))
    run_well(world, exit_code=1)
    world.send(MARKS, mark("x", 1, 2, 5))
    world.settle_down()
    check_rest(world)


def a_herd_comes_in_batches(world: World) -> None:
    """A trade goes before it, a second price joins it, a batch is killed, another dispatcher goes on."""
    world.send(MARKS, mark("a", 0, 12, 2))
    run_batches(world)
    check_always(world)
    world.send(TRADES, trade("t5", 2, "R", "a", 0, 2))
    run_batches(world)
    check_always(world)
    world.send(MARKS, mark("a", 1, 13, 3), mark("x", 1, 5, 3))
    run_batches(world, f"{soon('after-write', DAILY)}=kill")
    check_always(world)
    run_batches(world, f"{soon('after-record', DAILY)}=kill", batches=2)
    check_always(world)
    run_while(world, "before-write", DAILY, partial(world.another, world.run))
    mend(world)
    world.send(MARKS, mark("a", 0, 14, 4))
    world.run(fail=f"{soon('after-write', DAILY, 2)}=kill")
    world.use_catalog(new_catalog())
    mend(world)
    check_rest(world)


def what_was_superseded_outlives_its_catalog(world: World) -> None:
    """Catalogs are lost and rebuilt, everything is backfilled, and a valuation that froze is thawed."""
    world.send(TRADES, trade("t1", 2, "P", "a", 0, 6))
    run_well(world)
    world.use_catalog(world.rebuilt())
    run_well(world)
    world.use_catalog(new_catalog())
    world.send(TRADES, trade("t1", 3, "P", "a", 0, 7))
    run_well(world)
    world.backfill("stock")
    check_rest(world, rebuilt=False)
    world.switches["scale"] = 2
    world.backfill(DAILY)
    check_rest(world)
    for name in (HISTORY, DAILY):
        require(any(row["epoch"] for row in world.rows(name)), "epochs were counted", name)


SCENARIOS: tuple[Scenario, ...] = (
    the_past_of_trades_changes,
    prices_and_dates_change,
    a_key_fails_and_is_mended,
    a_herd_comes_in_batches,
    what_was_superseded_outlives_its_catalog,
)
