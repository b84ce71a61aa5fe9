"""The story is told once and its hits are counted. Then what a kill at a hit leaves is started again."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.dispatch import failpoints

from .fate import Fate
from .kinds.kind import Step
from .laws import check_always, check_owed, check_rest
from .world import Saved, World

Hit = tuple[str, str, int]
"""A point, a node, and which of its hits."""
Told = dict[str, tuple[Saved, list[Hit]]]
"""By step: the world before it, and the hits in it."""


@contextmanager
def tell(
    story: Sequence[Step], folder: Path, make_fate: Callable[[], Fate], world_type: type[World]
) -> Iterator[Told]:
    """The story told once without a fault."""
    fate, steps = make_fate(), {}
    with pytest.MonkeyPatch.context() as patch:
        fate.install(patch)
        world = world_type(folder / "world", fate)
        for number, step in enumerate(story):
            step.before(world)
            saved = Saved(world, folder / f"before-{number}")
            steps[step.name] = (saved, hits_of(world, step))
            check_always(world)
        world.settle_down()
        check_rest(world)
        world.close()
    yield steps
    for saved, _ in steps.values():
        saved.catalog.close()


def hits_of(world: World, step: Step, fail: str = "") -> list[Hit]:
    """The hits of a step, counted while it is done."""
    before = dict(failpoints.hits)
    step.act(world, fail)
    found = {name: count - before.get(name, 0) for name, count in failpoints.hits.items() if ":" in name}
    return [(*name.split(":"), nth) for name, count in sorted(found.items()) for nth in range(1, count + 1)]  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wreck:
    """What a kill at any of these hits leaves. Between the first and the last nothing was written."""

    hits: list[str] = field(default_factory=list)
    saved: Saved

    def recover(self, folder: Path, fate: Fate) -> float:
        """Start again, run to rest; every law holds. The seconds until it rests."""
        return recover(self.saved.restore(folder, fate))


def wrecks_of(
    step: Step,
    saved: Saved,
    fate: Fate,
    folder: Path,
    every: int = 1,
    first: int = 0,
    nodes: Sequence[str] = (),
) -> list[Wreck]:
    """The wrecks that a kill in a step can leave: one in `every`, from the `first` on.

    With `nodes`, a kill while one of these is worked on. The step is done once. At each hit everything is
    copied: a killed process leaves nothing else.
    """
    world = saved.restore(folder / "whole", fate)
    wrecks: list[Wreck] = []
    seen: list[object] = []

    def watch(point: str, node: str) -> None:
        now = world.fingerprint()
        if not seen or now != seen[-1]:
            seen.append(now)
            if is_chosen():
                wrecks.append(Wreck(saved=Saved(world, folder / f"wreck-{len(wrecks)}")))
        if is_chosen():
            wrecks[-1].hits.append(f"{point}:{node}")

    def is_chosen() -> bool:
        return (len(seen) - 1) % every == first % every

    fate.watch = watch
    places = [f"{point}:{node}" for point in failpoints.POINTS for node in nodes] or failpoints.POINTS
    step.act(world, ",".join(f"{place}=watch" for place in places))
    world.close()
    return wrecks


def recover(world: World, *, rebuilt: bool = True) -> float:
    check_always(world)
    began = time.monotonic()
    world.settle_down()
    seconds = time.monotonic() - began
    check_rest(world, rebuilt=rebuilt)
    check_owed(world)
    world.close()
    return seconds
