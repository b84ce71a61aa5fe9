"""What may happen to rooms: devices move, come back and are dated anew, readings are late, days pass."""

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from strandline.app.planning import RunRequest
from tests.faults.kinds.kind import Happening, Step

from .data import DAY, DEVICES, READINGS, device, reading

if TYPE_CHECKING:
    from strandline.app.run import RunOutcome
    from tests.faults.world import World


def run_days_ago(world: "World", fail: str = "", days: int = 4) -> "RunOutcome | None":
    """A run at an earlier time, that a person names."""
    return world.run(RunRequest(as_of=world.fate.clock - timedelta(days=days)), fail)


def _move_and_let_a_day_pass(world: "World") -> None:
    """A row that moves also crosses a border, and so does one that stays."""
    world.send(DEVICES, device("a", 2, 3, -1, 20), device("c", 1, 4, 0, 20), device("c", 9, 4, 0, 19))
    world.send(READINGS, reading(2, 6, 0), reading(5, 1, -2), reading(None, 1, 0))
    world.jump(DAY)


def _let_be_loud(world: "World") -> None:
    world.switches["loud"] = True
    world.send(READINGS, reading(1, 2, 0), reading(8, 1, 1))


def _raise_the_bound(world: "World") -> None:
    world.switches["least"] = 3
    world.send(DEVICES, device("a", 1, 5, 2, 30), device("b", 2, 2, 2, 30))


def _let_a_day_pass_with_a_new_room(world: "World") -> None:
    world.send(DEVICES, device("c", 10, 4, 2, 31), device("a", 2, 5, 3, 31))
    world.jump(DAY)


def _let_be_silent(world: "World") -> None:
    world.switches["loud"] = False
    world.send(DEVICES, device("c", 1, 4, 2, 32))


def fill_stale(world: "World", fail: str = "") -> "RunOutcome | None":
    """What a person asks for who wants the variables that are held filled."""
    return world.run(RunRequest(backfill="room", only_stale=True, reason="a test"), fail)


STORY = (
    Step(
        name="devices move, go and come back",
        before=lambda w: w.send(
            DEVICES,
            device("a", 2, 3, -1, 3),
            device("b", 1, 0, -4, 3, op="D"),
            device("c", 7, 9, 1, 0),
            device("d", 1, 5, -2, 3),
            "broken",
        ),
    ),
    Step(
        name="late readings, and some of nobody",
        before=lambda w: w.send(READINGS, reading(1, 1, -3), reading(None, 3, -1), reading(6, None, None)),
        told_with="devices move, go and come back",
    ),
    Step(name="a day without data", before=lambda w: w.jump(DAY)),
    Step(name="a day with data that cross borders too", before=_move_and_let_a_day_pass),
    Step(
        name="devices come back and are dated anew",
        before=lambda w: w.send(
            DEVICES, device("b", 2, 1, 2, 21), device("a", 1, 3, -9, 21), device("d", None, 5, 1, 21)
        ),
        told_with="a day with data that cross borders too",
    ),
    Step(name="an end time that is set back", act=run_days_ago, leaves_work=True),
    Step(
        name="many rooms lose their last device",
        before=lambda w: w.send(DEVICES, *(device(id_, None, None, None, 22, op="D") for id_ in "abcd")),
        many_keys=True,
    ),
)
AFTER_CLEANING = (
    Step(name="a variable is added", before=_let_be_loud),
    Step(name="a variable is changed", before=_raise_the_bound),
    Step(name="a day while a variable is held", before=_let_a_day_pass_with_a_new_room),
    Step(name="a variable is filled", act=lambda w, fail: fill_stale(w, fail)),
    Step(name="a variable is removed", before=_let_be_silent),
    Step(
        name="a month passes",
        before=lambda w: w.jump(30 * DAY),
    ),
    Step(name="a backfill of rooms", act=lambda w, fail: w.backfill("room", fail), only_long=True),
)

_ROOMS = st.sampled_from([1, 1, 2, 3, None])
_AMOUNTS = st.sampled_from([0, 1, 2, 5, None])
_DAYS = st.sampled_from([None, -6, -4, -3, -2, -1, 0, 1, 2])
_IDS = st.sampled_from("abcde")


def a_device_is_placed_or_moves(
    world: "World", id_: str, room: int | None, power: int | None, placed: int | None
) -> None:
    world.send(DEVICES, device(id_, room, power, placed, world.later()))


def a_device_goes(world: "World", id_: str) -> None:
    world.send(DEVICES, device(id_, None, None, None, world.later(), op="D"))


def a_fact_about_a_device_loses(world: "World", id_: str, room: int | None) -> None:
    """It still names a room."""
    world.send(DEVICES, device(id_, room and room + 5, 8, 0, -world.later()))


def a_reading_arrives(world: "World", room: int | None, amount: int | None, on: int | None) -> None:
    world.send(READINGS, reading(room, amount, on), reading(None, amount, on))


def a_variable_changes(world: "World", least: int) -> None:
    world.switches["least"] = least


def a_variable_comes_or_goes(world: "World") -> None:
    world.switches["loud"] = not world.switches["loud"]


def days_pass(world: "World", days: int) -> None:
    world.jump(days * DAY)


HAPPENINGS = (
    Happening(
        do=a_device_is_placed_or_moves,
        drawn={"id_": _IDS, "room": _ROOMS, "power": _AMOUNTS, "placed": _DAYS},
    ),
    Happening(do=a_device_goes, drawn={"id_": _IDS}),
    Happening(do=a_fact_about_a_device_loses, drawn={"id_": _IDS, "room": _ROOMS}),
    Happening(do=a_reading_arrives, drawn={"room": _ROOMS, "amount": _AMOUNTS, "on": _DAYS}),
    Happening(do=a_variable_changes, drawn={"least": st.sampled_from([1, 1, 3, 5])}),
    Happening(do=a_variable_comes_or_goes),
    Happening(do=days_pass, drawn={"days": st.sampled_from([1, 1, 2, 7, -1])}),
)


def an_end_time_is_set_back(world: "World", fail: str, days: int) -> None:
    run_days_ago(world, fail, days)


def variables_are_filled(world: "World", fail: str) -> None:
    fill_stale(world, fail)


REQUESTS = (
    Happening(do=variables_are_filled),
    Happening(do=an_end_time_is_set_back, drawn={"days": st.sampled_from([1, 2, 5])}),
)


def a_device_is_news(world: "World") -> None:
    at = world.later()
    world.send(DEVICES, device("abcde"[at % 5], 1 + at % 3, at % 4, at % 5 - 4, at))


def a_reading_is_news(world: "World") -> None:
    at = world.later()
    world.send(READINGS, reading(1 + at % 3, at % 4, at % 5 - 4))


def a_day_is_news(world: "World") -> None:
    world.jump(DAY)


NEWS = (a_device_is_news, a_reading_is_news, a_day_is_news)
