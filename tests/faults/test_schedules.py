"""Random schedules of what users and fate do, against plain Python over the lines that were sent.

`STRANDLINE_SCHEDULES=10000` runs more of them, each time others.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from strandline.app.planning import RunRequest
from strandline.catalog import Catalog
from strandline.dispatch.failpoints import POINTS, FailpointError
from strandline.model.errors import StrandlineError

from .fate import Fate, soon
from .kinds.kind import Happening
from .laws import check_always, check_rest
from .world import Ledger, PublishingDesk, Rooms, Saved, World, make_folder, new_catalog

pytestmark = pytest.mark.faults

SCHEDULES = int(os.environ.get("STRANDLINE_SCHEDULES", "300"))
LEDGER_SCHEDULES = SCHEDULES // 10
"""Fewer, because the model of timelines has schedules of its own, by the thousand (`tests/property`)."""
ROOMS_SCHEDULES = SCHEDULES // 5
STEPS = 8 if "STRANDLINE_SCHEDULES" in os.environ else 6
RUN_POINTS = POINTS[: POINTS.index("after-purge") + 1]
MAINTAIN_POINTS = (
    "before-compact",
    "after-compact",
    "before-vacuum",
    "after-vacuum",
    "before-write",
    "after-write",
    "before-record",
)


def of_the_world(choices: Callable[[World], Sequence[Any]]) -> st.SearchStrategy[Any]:
    return st.runner().flatmap(lambda schedule: st.sampled_from(choices(schedule.world)))


DATASETS = of_the_world(lambda world: [node.name for node in world.project.nodes])
NEWS = of_the_world(lambda world: [None, *(news for kind in world.kinds for news in kind.news)])
SELECTIONS = of_the_world(lambda world: ["", "", *(s for kind in world.kinds for s in kind.selections)])
BACKFILLS = of_the_world(lambda world: [name for kind in world.kinds for name in kind.backfills])
Fault = tuple[str, str, int] | None
News = Callable[[World], None] | None


def faults_at(points: Sequence[str]) -> st.SearchStrategy[Fault]:
    """A kill or an error at the n-th hit of a point, an answer that is lost, or nothing."""
    nth = st.integers(1, 5)
    return st.one_of(
        st.just(None),
        st.tuples(st.just("kill"), st.sampled_from(points), nth),
        st.tuples(st.just("raise"), st.sampled_from(points), nth),
        st.tuples(st.just("lose"), st.just("after-write"), nth),
    )


FAULTS, MAINTAIN_FAULTS = faults_at(RUN_POINTS), faults_at(MAINTAIN_POINTS)


def failing(fault: Fault) -> str:
    return f"{soon(fault[1], nth=fault[2])}={fault[0]}" if fault else ""


class Ground:
    """Where schedules start: a world after its first run, made once."""

    def __init__(self, fate: type[Fate], world_type: type[World]) -> None:
        self.fate, self.world_type = fate, world_type
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._saved: Saved | None = None
        self._numbers = itertools.count()

    def restore(self, fate: Fate) -> World:
        folder = Path(self._folder.name) if self._folder else self._make()
        assert self._saved is not None
        return self._saved.restore(
            folder / (f"world-{next(self._numbers)}" if self.world_type.needs_new_folder else "world"), fate
        )

    def _make(self) -> Path:
        self._folder = make_folder()
        folder, fate = Path(self._folder.name), self.fate()
        with pytest.MonkeyPatch.context() as patch:
            fate.install(patch)
            world = self.world_type(folder / "first", fate)
            for kind in world.kinds:
                kind.ground(world)
            world.settle_down()
            check_rest(world)
            self._saved = Saved(world, folder / "saved")
        return folder

    def clear(self) -> None:
        if self._folder:
            self._folder.cleanup()
        self._folder = self._saved = None


class Schedules(RuleBasedStateMachine):
    """A small world after its first run."""

    ground: ClassVar[Ground]

    def __init__(self) -> None:
        super().__init__()
        self.world = self.ground.restore(fate := self.ground.fate())
        self.fate, self.patch = fate, pytest.MonkeyPatch()
        self.fate.install(self.patch)
        self.kept: Catalog | None = None
        self.moved = False
        """Whether something happened that the laws have not been checked after."""
        self.rebuilt = True

    @initialize(one_in_four=st.integers(0, 3))
    def a_catalog_is_filled_from_the_tables_at_the_end(self, one_in_four: int) -> None:
        self.rebuilt = one_in_four == 0

    @rule(fault=FAULTS)
    def run(self, fault: Fault) -> None:
        self.world.run(fail=failing(fault))
        self.moved = True

    @rule(fault=MAINTAIN_FAULTS)
    def maintain(self, fault: Fault) -> None:
        self.world.maintain(failing(fault))
        self.moved = True

    @rule(name=BACKFILLS, fault=FAULTS)
    def backfill(self, name: str, fault: Fault) -> None:
        self.world.backfill(name, failing(fault))
        self.moved = True

    @rule(point=st.sampled_from(RUN_POINTS), nth=st.integers(1, 9), news=NEWS, select=SELECTIONS)
    def another_dispatcher_takes_over(self, point: str, nth: int, news: News, select: str) -> None:
        """A run stands still past its lease while another does its work, or a part, and more."""
        with self._meanwhile(lambda: self._run_with(news, select)):
            self.world.run(fail=f"{soon(point, nth=nth)}=call")

    @rule(point=st.sampled_from(MAINTAIN_POINTS), nth=st.integers(1, 5), news=NEWS)
    def a_dispatcher_takes_over_from_maintain(self, point: str, nth: int, news: News) -> None:
        with self._meanwhile(lambda: self._run_with(news)):
            self.world.maintain(f"{soon(point, nth=nth)}=call")

    @precondition(lambda self: self.fate.sends_late)
    @rule(dataset=DATASETS, point=st.sampled_from(RUN_POINTS), nth=st.integers(1, 6), news=NEWS)
    def a_write_arrives_after_its_process_died(self, dataset: str, point: str, nth: int, news: News) -> None:
        if news:
            news(self.world)
        self.fate.holds_back = dataset
        self.world.run()
        self.fate.holds_back = None
        with self._meanwhile(lambda: self._survive(self.fate.arrive)):
            self.world.run(fail=f"{soon(point, nth=nth)}=call")
        self._survive(self.fate.arrive)

    @rule(seconds=st.sampled_from([-100_000, -1, 3, 100_000]), as_of=st.booleans())
    def the_clock_jumps(self, seconds: int, as_of: bool) -> None:
        self.world.jump(seconds)
        if as_of:
            self.world.run(RunRequest(as_of=self.fate.clock))

    @rule(dataset=DATASETS)
    def someone_compacts(self, dataset: str) -> None:
        self.world.compact(dataset)

    @rule()
    def the_catalog_is_rebuilt(self) -> None:
        self.world.use_catalog(self.world.rebuilt())
        self.moved = True

    @rule()
    def the_catalog_is_lost(self) -> None:
        self.world.use_catalog(new_catalog())

    @rule()
    def the_catalog_is_copied(self) -> None:
        self.kept = self.world.copy_catalog()

    @precondition(lambda self: self.kept is not None)
    @rule()
    def an_old_catalog_is_put_back(self) -> None:
        assert self.kept is not None
        self.world.use_catalog(self.kept)
        self.kept = None
        self.moved = True

    def _run_with(self, news: News, select: str = "") -> None:
        """What another dispatcher does, after something has arrived."""
        if news:
            news(self.world)
        self.world.another(lambda: self.world.run(RunRequest(select=select)))

    @contextmanager
    def _meanwhile(self, happening: Callable[[], object]) -> Iterator[None]:
        """What happens at the failpoint whose action is `call`."""
        self.fate.meanwhile = happening
        yield
        self.fate.meanwhile = None
        self.moved = True

    def _survive(self, what: Callable[[], Any]) -> None:
        """What may be refused, as long as nothing wrong comes of it."""
        with suppress(StrandlineError, FailpointError, ConnectionError):
            what()
        self.moved = True

    @invariant()
    def what_readers_see_is_right_at_any_moment(self) -> None:
        if self.moved:
            check_always(self.world)
            self.moved = False

    def teardown(self) -> None:
        try:
            self.world.settle_down()
            check_rest(self.world, rebuilt=self.rebuilt)
        finally:
            self.world.close()
            self.patch.undo()
            shutil.rmtree(self.world.folder)


def _rule_of(happening: Happening) -> object:
    """What may happen to a kind, as a rule of all schedules."""

    def happens(schedule: Schedules, drawn: Mapping[str, Any]) -> None:
        happening.do(schedule.world, **drawn)

    happens.__name__ = happening.do.__name__
    return rule(drawn=st.fixed_dictionaries(dict(happening.drawn)))(happens)


def _rule_of_request(request: Happening) -> object:
    """What may be asked for, with a fault; it may be refused."""

    def is_asked(schedule: Schedules, drawn: Mapping[str, Any], fault: Fault) -> None:
        schedule._survive(lambda: request.do(schedule.world, failing(fault), **drawn))

    is_asked.__name__ = request.do.__name__
    return rule(drawn=st.fixed_dictionaries(dict(request.drawn)), fault=FAULTS)(is_asked)


def schedules_of(ground: Ground) -> type[Schedules]:
    """Schedules of what may happen in a world."""
    machine: type[Schedules] = type("WorldSchedules", (Schedules,), {"ground": ground})
    for kind in ground.world_type.kinds:
        rules = {happening.do.__name__: _rule_of(happening) for happening in kind.happenings}
        rules |= {request.do.__name__: _rule_of_request(request) for request in kind.requests}
        for name, made in rules.items():
            assert not hasattr(machine, name), f"two rules are called {name}"
            setattr(machine, name, made)
    return machine


def run_schedules(machine: type[Schedules], count: int, steps: int, *, chosen_anew: bool) -> None:
    chosen = settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not chosen_anew,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    finally:
        machine.ground.clear()


def test_no_schedule_breaks_a_law(say: Callable[[str], None]) -> None:
    """When faults stop all work drains, and every law holds."""
    machine = schedules_of(Ground(Fate, World))

    run_schedules(machine, SCHEDULES, STEPS, chosen_anew="STRANDLINE_SCHEDULES" in os.environ)

    say(f"schedules {SCHEDULES}, violations 0")


def test_no_schedule_of_the_ledger_breaks_a_law(say: Callable[[str], None]) -> None:
    machine = schedules_of(Ground(Fate, Ledger))

    run_schedules(machine, LEDGER_SCHEDULES, STEPS, chosen_anew="STRANDLINE_SCHEDULES" in os.environ)

    say(f"schedules of the ledger {LEDGER_SCHEDULES}, violations 0")


def test_no_schedule_of_entities_breaks_a_law(say: Callable[[str], None]) -> None:
    machine = schedules_of(Ground(Fate, Rooms))

    run_schedules(machine, ROOMS_SCHEDULES, STEPS, chosen_anew="STRANDLINE_SCHEDULES" in os.environ)

    say(f"schedules of entities {ROOMS_SCHEDULES}, violations 0")


def test_no_schedule_of_the_desk_breaks_a_law(say: Callable[[str], None]) -> None:
    machine = schedules_of(Ground(Fate, PublishingDesk))

    run_schedules(machine, LEDGER_SCHEDULES, STEPS, chosen_anew="STRANDLINE_SCHEDULES" in os.environ)

    say(f"schedules of the desk {LEDGER_SCHEDULES}, violations 0")
