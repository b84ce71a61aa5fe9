"""Telling a story once, its hits counted; then killing at a hit, starting again, running to rest. With Spark and without."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from strandline.dispatch import failpoints

from .fate import Fate, soon
from .laws import check_always, check_rest
from .story import Step
from .world import Saved, World

Hit = tuple[str, str, int]
"""A point, a node, and which of its hits."""
Told = dict[str, tuple[Saved, list[Hit]]]
"""By step: the world before it, and the hits in it."""


def tell(story: Sequence[Step], folder: Path, make_fate: Callable[[], Fate], kind: type[World]) -> Told:
    """The story told once without a fault."""
    fate, steps = make_fate(), {}
    with pytest.MonkeyPatch.context() as patch:
        fate.install(patch)
        world = kind(folder / "world", fate)
        for number, step in enumerate(story):
            step.before(world)
            saved = Saved(world, folder / f"before-{number}")
            steps[step.name] = (saved, hits_of(world, step))
            check_always(world)
        world.settle_down()
        check_rest(world)
        world.close()
    return steps


def forget(told: Told) -> None:
    for saved, _ in told.values():
        saved.catalog.close()


def hits_of(world: World, step: Step, fail: str = "") -> list[Hit]:
    """The hits of a step, counted while it is done."""
    before = dict(failpoints.hits)
    step.act(world, fail)
    found = {name: count - before.get(name, 0) for name, count in failpoints.hits.items() if ":" in name}
    return [(*name.split(":"), nth) for name, count in sorted(found.items()) for nth in range(1, count + 1)]  # type: ignore[misc]


def kill_and_recover(step: Step, saved: Saved, hit: Hit, fate: Fate, folder: Path) -> float:
    """Kill at a hit, start again, run to rest; every law holds. The seconds until it rests."""
    point, node, nth = hit
    world = saved.restore(folder, fate)
    outcome = step.act(world, f"{soon(point, node, nth)}=kill")
    assert outcome is None, f"{point}:{node}#{nth} did not kill"
    return recover(world)


def recover(world: World, *, rebuilt: bool = True) -> float:
    check_always(world)
    began = time.monotonic()
    world.settle_down()
    seconds = time.monotonic() - began
    check_rest(world, rebuilt=rebuilt)
    world.close()
    return seconds
