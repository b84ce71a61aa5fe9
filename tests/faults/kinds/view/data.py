"""What is sent about trades, and what happens to them."""

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.faults.kinds.kind import Happening, Step, Stream

if TYPE_CHECKING:
    from tests.faults.world import World

TRADES = Stream(
    folder="trades",
    source="trade_events",
    dataset="trade",
    columns={"id": "string", "quantity": "bigint", "at": "bigint", "op": "string"},
    required=("id", "at"),
    declared="""require: [at]
record_set: {key: [id], order_by: [at], deleted: "op = 'D'"}""",
    key=("id",),
    posted=True,
)
VIEW = "large"


def trade(id_: str, quantity: int | None, at: int, op: str | None = None) -> dict[str, Any]:
    return {"id": id_, "quantity": quantity, "at": at, "op": op}


def begin(world: "World") -> None:
    world.send(TRADES, trade("a", 8, 1), trade("b", 5, 1))


def ground(world: "World") -> None:
    world.send(TRADES, trade("c", 9, 2), trade("a", 6, 2), trade("d", 6, 2))


def send_trade(world: "World", id_: str, quantity: int | None, op: str | None) -> None:
    world.send(TRADES, trade(id_, quantity, world.later(), op))


def send_late_trade(world: "World", id_: str, quantity: int | None, at: int) -> None:
    world.send(TRADES, trade(id_, quantity, at))


def edit_view(world: "World", least: int) -> None:
    world.switches["least"] = least


def send_news(world: "World") -> None:
    at = world.later()
    world.send(TRADES, trade("abcd"[at % 4], at % 10, at))


_IDS, _QUANTITIES = st.sampled_from("abcd"), st.sampled_from([1, 3, 4, 6, 7, 9, None])
HAPPENINGS = (
    Happening(
        do=send_trade,
        drawn={"id_": _IDS, "quantity": _QUANTITIES, "op": st.sampled_from([None, None, None, "D"])},
    ),
    Happening(do=send_late_trade, drawn={"id_": _IDS, "quantity": _QUANTITIES, "at": st.integers(0, 9)}),
    Happening(do=edit_view, drawn={"least": st.integers(4, 7)}),
)
STORY = (
    Step(
        name="trades", before=lambda w: w.send(TRADES, trade("a", 4, 2), trade("b", 9, 2), trade("c", 7, 2))
    ),
    Step(
        name="a trade leaves",
        before=lambda w: w.send(TRADES, trade("b", 9, 3, "D"), trade("a", 3, 3), trade("d", 6, 3)),
        many_keys=True,
    ),
    Step(name="an edited view", before=lambda w: edit_view(w, 4), told_with="a trade leaves"),
)
AFTER_CLEANING = (
    Step(name="backfill of trades", act=lambda w, fail: w.backfill("trade", fail), only_long=True),
)
