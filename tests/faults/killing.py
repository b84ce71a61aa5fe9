"""Switching mutants on, one at a time, and looking which law breaks."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


def make_mutant_tests(
    mutants: Mapping[Mutant, Scenario],
    played: Collection[Scenario],
    world_type: type[World],
    make_fate: Callable[[], Fate] = Fate,
    first: Scenario = first,
    what: str = "",
) -> tuple[Any, Any, Any, Any]:
    """The fixture and the three tests of a file of mutants. `played`: the scenarios that must break no law.

    A file binds them to `start`, `test_without_a_mutant_no_law_breaks`, `test_a_mutant_is_killed` and
    `test_all_mutants_were_killed`, in this order. `what` begins the line that says how many were killed.
    """

    @pytest.fixture(scope="module")
    def start(worlds: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
        # A plain project is loaded once if its path stays the same. Spark needs room on the disk.
        folder = tmp_path_factory.mktemp("mutants") if world_type.needs_new_folder else worlds / "mutants"
        with make_start(folder, make_fate, world_type, first) as made:
            yield made

    @pytest.mark.parametrize("scenario", played, ids=lambda s: s.__name__)
    def no_law_breaks(scenario: Scenario, start: Start) -> None:
        broken = start.play(scenario)
        assert broken is None, broken

    @pytest.mark.parametrize("mutant", mutants, ids=lambda m: m.__name__)
    def is_killed(mutant: Mutant, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        broken = start.kill(mutant, mutants[mutant], monkeypatch)
        if world_type.needs_new_folder:  # in plain worlds it is the word for any exception of a worker
            assert "[spark-failed]" not in broken, "a mutant that Spark cannot run proves nothing"

    def all_were_killed(start: Start, request: pytest.FixtureRequest, say: Callable[[str], None]) -> None:
        say(f"{what}{start.tell(mutants, request)}")

    return start, no_law_breaks, is_killed, all_were_killed
