"""Switching mutants on, one at a time, and looking which law breaks."""

import itertools
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .fate import Fate
from .scenarios import Scenario, first
from .world import Saved, World

Mutant = Callable[[pytest.MonkeyPatch], None]


@dataclass(kw_only=True)
class Start:
    """The world that every scenario starts in, and where it is played."""

    saved: Saved
    folder: Path
    make_fate: Callable[[], Fate]
    numbers: Iterator[int] = field(default_factory=itertools.count)
    killed: set[str] = field(default_factory=set)
    """The mutants that broke a law."""

    def play(self, scenario: Scenario) -> str | None:
        """The law that broke, or None."""
        with pytest.MonkeyPatch.context() as patch:
            fate = self.make_fate()
            fate.install(patch)
            world = self.saved.restore(
                self.folder
                / (str(next(self.numbers)) if self.saved.world_type.needs_new_folder else "world"),
                fate,
            )
            try:
                scenario(world)
            except AssertionError as error:
                return str(error)
            finally:
                world.close()
        return None

    def kill(self, mutant: Mutant, scenario: Scenario, patch: pytest.MonkeyPatch) -> str:
        """Switch a mutant on: the law that breaks."""
        mutant(patch)
        broken = self.play(scenario)
        assert broken, f"{mutant.__name__} survives"
        self.killed.add(mutant.__name__)
        return broken

    def tell(self, mutants: Collection[Mutant], request: pytest.FixtureRequest) -> str:
        """How many were killed, which must be all of them."""
        chosen = [
            i.name for i in request.session.items if i.path == request.path and "mutant_is_killed" in i.name
        ]
        if len(chosen) < len(mutants):
            pytest.skip("some mutants were chosen")
        assert self.killed == {mutant.__name__ for mutant in mutants}
        return f"mutants killed {len(self.killed)} of {len(mutants)}"


@contextmanager
def make_start(
    folder: Path, make_fate: Callable[[], Fate], world_type: type[World], first: Scenario = first
) -> Iterator[Start]:
    with pytest.MonkeyPatch.context() as patch:
        fate = make_fate()
        fate.install(patch)
        world = world_type(folder / "first", fate)
        first(world)
        saved = Saved(world, folder / "saved")
        world.close()
    yield Start(saved=saved, folder=folder, make_fate=make_fate)
    saved.catalog.close()
