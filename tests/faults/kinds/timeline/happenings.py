"""What may happen to trades."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.faults.kinds.kind import Happening, Step

from .data import TRADES, trade

if TYPE_CHECKING:
    from tests.faults.world import World

STORY = (
    Step(
        name="the past of trades",
        before=lambda w: w.send(
            TRADES,
            trade("t5", 2, "P", "a", 1, 2),  # back-dated
            trade("t6", 2, "Q", "a", 3, 1),  # goes on from the state
            trade("t4", 2, "Q", "b", 2, 4),  # moves to another key
            trade("t2", 2, "P", "b", 1, 3, op="D"),  # the last of its key is cancelled
            trade("t7", 2, "R", "a", None, 1),  # has no date
        ),
    ),
    Step(
        name="an oversell",
        before=lambda w: w.send(TRADES, trade("t8", 3, "P", "a", 2, -9), trade("t4", 3, "R", "a", 1, 4)),
        exit_code=1,
    ),
    Step(
        name="a trade of a key that fails",
        before=lambda w: w.send(TRADES, trade("t9", 4, "P", "a", 3, 1), trade("t2", 4, "P", "b", 0, 2)),
        exit_code=1,
        told_with="an oversell",
    ),
    Step(name="the oversell is mended", before=lambda w: w.send(TRADES, trade("t8", 5, "P", "a", 2, -1))),
)

_TRADES = st.sampled_from(["t1", "t2", "t3", "t4", "t5", "t6", "a"])


def a_trade_arrives(
    world: "World", name: str, portfolio: str, security: str, on: int | None, amount: int
) -> None:
    """New, back-dated, moved or corrected: whatever it turns out to be. It may sell what is not there."""
    world.send(TRADES, trade(name, world.later(), portfolio, security, on, amount))


def a_trade_is_cancelled(world: "World", name: str) -> None:
    world.send(TRADES, trade(name, world.later(), "P", "a", 0, 1, op="D"))


HAPPENINGS = (
    Happening(
        do=a_trade_arrives,
        drawn={
            "name": _TRADES,
            "portfolio": st.sampled_from("PQR"),
            "security": st.sampled_from("ab"),
            "on": st.sampled_from([0, 1, 2, 3, 3, 4, 6, 7, None]),
            "amount": st.sampled_from([-3, -1, 1, 2, 2, 3]),
        },
    ),
    Happening(do=a_trade_is_cancelled, drawn={"name": _TRADES}),
)


def a_trade_is_news(world: "World") -> None:
    at = world.later()
    world.send(TRADES, trade(f"t{at % 7}", at, "PQR"[at % 3], "ab"[at % 2], at % 4, 1 + at % 3))


NEWS = (a_trade_is_news,)
