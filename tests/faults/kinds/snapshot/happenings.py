"""What may happen to records."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.faults.kinds.kind import Happening, Step

from .data import ITEMS, RATES, item, rates

if TYPE_CHECKING:
    from tests.faults.world import World

_IDS = st.sampled_from("abcd")
_VALUES = {
    "name": st.sampled_from(["x", "y", None]),
    "colour": st.sampled_from(["red", None]),
    "price": st.sampled_from([1, 2, None]),
}

STORY = (
    Step(
        name="ingest",
        before=lambda w: w.send(
            ITEMS,
            item("a", 1),
            item("b", 1),
            item("c", 1, "y", "blue", 2),
            item("d", 1, None, "red", None),
            "broken",
        ),
    ),
    Step(
        name="late fact",
        before=lambda w: w.send(ITEMS, item("b", 0, "late"), item("e", 0, "y")),
        many_keys=True,
    ),
    Step(
        name="correction",
        before=lambda w: w.send(ITEMS, item("b", 2, "x", "red", 3)),
        told_with="late fact",
    ),
    Step(
        name="delete",
        before=lambda w: w.send(ITEMS, item("c", 2, "y", "blue", 2, op="D")),
        told_with="late fact",
    ),
    Step(
        name="late fact of a deleted key",
        before=lambda w: w.send(ITEMS, item("c", 1, "z", "blue", 7)),
        told_with="late fact",
    ),
    Step(
        name="key move",
        before=lambda w: w.send(ITEMS, item("d", 2, "x", None, None), item("a", 3, None, "x")),
        told_with="late fact",
    ),
    Step(
        name="tie",
        before=lambda w: w.send(ITEMS, item("e", 5, "one"), item("e", 5, "two"), item("e", 5, None)),
        told_with="late fact",
    ),
    Step(
        name="duplicate",
        before=lambda w: w.send(
            ITEMS, item("e", 5, "two"), item("a", 3, None, "x"), item(None, 1), item("g", 1, price="x")
        ),
        told_with="late fact",
    ),
    Step(name="a rate read whole", before=lambda w: w.send(RATES, *rates(5, at=2))),
)
AFTER_CLEANING = (
    Step(name="backfill of facts", act=lambda w, fail: w.backfill("item", fail), only_long=True),
)


def a_fact_arrives(
    world: "World", id_: str, name: str | None, colour: str | None, price: int | None, at: int, op: str | None
) -> None:
    """Late, early, a tie or a duplicate: whatever it turns out to be."""
    world.send(ITEMS, item(id_, at, name, colour, price, op=op))


def a_record_is_corrected_or_moves(
    world: "World", id_: str, name: str | None, colour: str | None, price: int | None
) -> None:
    world.send(ITEMS, item(id_, world.later(), name, colour, price))


def a_record_is_deleted(world: "World", id_: str) -> None:
    world.send(ITEMS, item(id_, world.later(), op="D"))


def a_tie_arrives(world: "World", id_: str, at: int) -> None:
    world.send(ITEMS, item(id_, at, "x"), item(id_, at, "y"), item(id_, at, None, None, 2))


def something_arrives_twice_and_something_broken(world: "World", id_: str) -> None:
    at = world.later()
    world.send(ITEMS, item(id_, at), item(id_, at), "broken", item(None, at))


def the_rate_changes(world: "World", percent: int) -> None:
    world.send(RATES, *rates(percent, at=world.later()))


HAPPENINGS = (
    Happening(
        do=a_fact_arrives,
        drawn={
            "id_": _IDS,
            **_VALUES,
            "at": st.integers(0, 9),
            "op": st.sampled_from([None, None, "D"]),
        },
    ),
    Happening(do=a_record_is_corrected_or_moves, drawn={"id_": _IDS, **_VALUES}),
    Happening(do=a_record_is_deleted, drawn={"id_": _IDS}),
    Happening(do=a_tie_arrives, drawn={"id_": _IDS, "at": st.integers(3, 5)}),
    Happening(do=something_arrives_twice_and_something_broken, drawn={"id_": _IDS}),
    Happening(do=the_rate_changes, drawn={"percent": st.integers(1, 3)}),
)


def an_item_is_news(world: "World") -> None:
    at = world.later()
    world.send(ITEMS, item("abcd"[at % 4], at, "y"), "broken too")


def a_rate_is_news(world: "World") -> None:
    at = world.later()
    world.send(RATES, *rates(at, at=at))


NEWS = (an_item_is_news, a_rate_is_news)
