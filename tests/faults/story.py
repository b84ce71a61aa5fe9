"""One story of everything that may happen to the data, told in steps: what arrives or is asked for, and the process that deals with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strandline.app.maintain import MaintainOutcome
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome

from .world import World

Act = Callable[[World, str], RunOutcome | MaintainOutcome | None]


def item(
    id_: str | None,
    at: int,
    name: str | None = "x",
    colour: str | None = "red",
    price: object = 1,
    **more: Any,
) -> dict[str, Any]:
    return {"id": id_, "at": at, "name": name, "colour": colour, "price": price, **more}


def block(hash_: str, parent: str, weight: int) -> dict[str, Any]:
    """A block whose hash ends in its number."""
    return {"number": int(hash_[1:]), "hash": hash_, "parent": parent, "weight": weight}


def run(world: World, fail: str) -> RunOutcome | None:
    return world.run(fail=fail)


def invalidate(world: World, fail: str) -> None:
    world.invalidate("name = 'x'", fail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`before` is what the world does, `act` what a process does about it."""

    name: str
    before: Callable[[World], None] = lambda _: None
    act: Act = run


def _set_factor(world: World) -> None:
    world.factor = 3
    world.send(item("b", 9, "x", "blue", 4))


def _change_unique_key(world: World) -> None:
    world.unique = "price, name"
    world.send(item("f", 10, "x", "red", 6))


def _drop_job(world: World) -> None:
    world.colours = False
    world.send(item("f", 11, "y", "red", 5))


def _bring_job_back(world: World) -> None:
    world.colours = True
    world.send(item("f", 12, "y", "blue", 5))
    world.announce("broken again")


STORY = (
    Step(name="what was there before"),
    Step(
        name="ingest",
        before=lambda w: w.send(
            item("a", 1),
            item("b", 1),
            item("c", 1, "y", "blue", 2),
            item("d", 1, None, "red", None),
            "broken",
        ),
    ),
    Step(name="late fact", before=lambda w: w.send(item("b", 0, "late"), item("e", 0, "y"))),
    Step(name="correction", before=lambda w: w.send(item("b", 2, "x", "red", 3))),
    Step(name="delete", before=lambda w: w.send(item("c", 2, "y", "blue", 2, op="D"))),
    Step(name="late fact of a deleted key", before=lambda w: w.send(item("c", 1, "z", "blue", 7))),
    Step(name="key move", before=lambda w: w.send(item("d", 2, "x", None, None), item("a", 3, None, "x"))),
    Step(name="tie", before=lambda w: w.send(item("e", 5, "one"), item("e", 5, "two"), item("e", 5, None))),
    Step(
        name="duplicate",
        before=lambda w: w.send(
            item("e", 5, "two"), item("a", 3, None, "x"), item(None, 1), item("g", 1, price="x")
        ),
    ),
    Step(name="a rate read whole", before=lambda w: w.rate(5, at=2)),
    Step(
        name="blocks",
        before=lambda w: w.announce(
            block("a2", "a1", 2), block("a3", "a2", 3), block("a4", "a3", 4), block("a6", "a5", 7), "broken"
        ),
    ),
    Step(
        name="a reorg to branch b",
        before=lambda w: w.announce(block("b2", "a1", 2), block("b3", "b2", 3), block("b4", "b3", 5)),
    ),
    Step(
        name="a reorg back to branch a",
        before=lambda w: w.announce(block("a5", "a4", 6), block("b3", "a2", 9)),
    ),
    Step(name="invalidation", act=lambda w, fail: invalidate(w, fail)),
    Step(name="what the invalidation asks for"),
    Step(name="configuration change", before=_set_factor),
    Step(name="invalidation of a partition", act=lambda w, fail: w.invalidate_partition("2-4", fail)),
    Step(name="a partition that was invalidated"),
    Step(
        name="backfill of a partition",
        act=lambda w, fail: w.backfill("stretches", fail, partitions=("0-2", "4-6")),
    ),
    Step(name="maintain", act=lambda w, fail: w.maintain(fail)),
    Step(name="backfill", act=lambda w, fail: w.backfill("names", fail)),
    Step(name="backfill of facts", act=lambda w, fail: w.backfill("item", fail)),
    Step(name="append", before=lambda w: w.send(item("f", 9, "x", "red", 8), item("g", 9, None, None, 8))),
    Step(name="a configuration that freezes", before=_change_unique_key),
    Step(name="backfill of what is frozen", act=lambda w, fail: w.backfill("told", fail)),
    Step(name="a job is removed", before=_drop_job),
    Step(name="a job is added", before=_bring_job_back),
    Step(
        name="a clock that went back",
        act=lambda w, fail: w.run(RunRequest(as_of=w.fate.clock.replace(year=2001)), fail),
    ),
)
