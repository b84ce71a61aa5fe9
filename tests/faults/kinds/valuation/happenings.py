"""What may happen to prices, rents, business dates and the clock."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from strandline.app.planning import RunRequest
from tests.faults.kinds.kind import Happening, Step
from tests.faults.kinds.timeline.data import TRADES, trade

from .data import MARKS, business_date, mark

if TYPE_CHECKING:
    from strandline.app.run import RunOutcome
    from tests.faults.world import World

_DAY = 86_400


def run_batches(world: "World", fail: str = "", batches: int = 1) -> "RunOutcome | None":
    return world.run(RunRequest(batches=batches), fail)


def _change_calendar(world: "World") -> None:
    """A holiday declared late, a Saturday that becomes a business date, and a new date is due."""
    world.send(MARKS, business_date(2, 7, op="D"), business_date(4, 7))
    world.jump(_DAY)


def _set_scale(world: "World") -> None:
    world.switches["scale"] = 3
    world.send(MARKS, mark("b", 0, 5, 8))


STORY = (
    Step(name="a price that many hang on", before=lambda w: w.send(MARKS, mark("a", 0, 13, 2))),
    Step(
        name="a herd, one batch at a time",
        before=lambda w: w.send(MARKS, mark("a", 1, 14, 3), mark("x", 2, 3, 3)),
        act=run_batches,
        leaves_work=True,
    ),
    Step(
        name="trades while keys wait",
        before=lambda w: w.send(TRADES, trade("u1", 6, "R", "b", 1, 2)),
        act=run_batches,
        leaves_work=True,
    ),
    Step(name="a price while keys wait", before=lambda w: w.send(MARKS, mark("a", 3, 9, 4))),
    Step(
        name="a rent is missing",
        before=lambda w: w.send(MARKS, mark("x", 0, None, 5, op="D"), mark("y", 0, 4, 5)),
        exit_code=1,
    ),
    Step(
        name="the rent comes",
        before=lambda w: w.send(MARKS, mark("x", 0, 2, 6)),
        told_with="a calendar that changes, and a clock",
    ),
    Step(name="a calendar that changes, and a clock", before=_change_calendar),
)
AFTER_CLEANING = (
    Step(name="a valuation that freezes", before=_set_scale),
    Step(name="a valuation is thawed", act=lambda w, fail: w.backfill("stock_daily", fail)),
)


def a_mark_arrives(world: "World", what: str, on: int, value: int | None) -> None:
    world.send(MARKS, mark(what, on, value, world.later()))


def a_mark_is_withdrawn(world: "World", what: str, on: int) -> None:
    world.send(MARKS, mark(what, on, None, world.later(), op="D"))


def a_business_date_comes_or_goes(world: "World", on: int, op: str | None) -> None:
    world.send(MARKS, business_date(on, world.later(), op=op))


def the_valuation_changes(world: "World", scale: int) -> None:
    world.switches["scale"] = scale


_DAYS = st.sampled_from([0, 1, 2, 3, 4, 6, 7])
HAPPENINGS = (
    Happening(
        do=a_mark_arrives,
        drawn={
            "what": st.sampled_from("aabxy"),
            "on": _DAYS,
            "value": st.sampled_from([1, 2, 2, 3, None]),
        },
    ),
    Happening(do=a_mark_is_withdrawn, drawn={"what": st.sampled_from("abxy"), "on": _DAYS}),
    Happening(do=a_business_date_comes_or_goes, drawn={"on": _DAYS, "op": st.sampled_from([None, "D"])}),
    Happening(do=the_valuation_changes, drawn={"scale": st.sampled_from([1, 1, 1000])}),
)


def some_batches_are_run(world: "World", fail: str, batches: int) -> None:
    run_batches(world, fail, batches)


REQUESTS = (Happening(do=some_batches_are_run, drawn={"batches": st.integers(1, 2)}),)


def a_mark_is_news(world: "World") -> None:
    at = world.later()
    world.send(MARKS, mark("axby"[at % 4], at % 3, at % 5, at))


NEWS = (a_mark_is_news,)
