"""Random schedules of what users and fate do, against plain Python over the lines that were sent.

`STRANDLINE_SCHEDULES=10000` runs more of them, each time others.
"""

import itertools
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from strandline.app.planning import RunRequest
from strandline.catalog import Catalog
from strandline.dispatch.failpoints import POINTS, FailpointError
from strandline.model.errors import StrandlineError

from .fate import Fate, soon
from .laws import check_always, check_rest
from .story import item
from .world import Saved, World, new_catalog

pytestmark = pytest.mark.faults

SCHEDULES = int(os.environ.get("STRANDLINE_SCHEDULES", "300"))
STEPS = 10 if "STRANDLINE_SCHEDULES" in os.environ else 6
RUN_POINTS = POINTS[: POINTS.index("after-purge") + 1]
NAMES, COLOURS, PRICES = st.sampled_from(["x", "y", None]), st.sampled_from(["red", None]), st.sampled_from([1, 2, None])
IDS = st.sampled_from("abcd")
DATASETS = st.sampled_from(["events", "item_facts", "item", "names", "colours", "told"])
FAULTS = st.one_of(
    st.just(None),
    st.tuples(st.just("kill"), st.sampled_from(RUN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("raise"), st.sampled_from(RUN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("lose"), st.just("after-write"), st.integers(1, 5)),
)
Fault = tuple[str, str, int] | None


def failing(fault: Fault) -> str:
    return f"{soon(fault[1], nth=fault[2])}={fault[0]}" if fault else ""


class Schedules(RuleBasedStateMachine):
    """A small world after its first run."""

    def __init__(self) -> None:
        super().__init__()
        self.fate, self.patch = Fate(), pytest.MonkeyPatch()
        self.fate.install(self.patch)
        self.world = template().restore(folder() / "world", self.fate)
        self.kept: Catalog | None = None
        self.newest = itertools.count(10)
        self.moved = False
        """Whether something happened that the laws have not been checked after."""

    @rule(id_=IDS, name=NAMES, colour=COLOURS, price=PRICES, at=st.integers(0, 9), op=st.sampled_from([None, None, "D"]))
    def a_fact_arrives(self, id_: str, name: str | None, colour: str | None, price: int | None, at: int, op: str | None) -> None:
        """Late, early, a tie or a duplicate: whatever it turns out to be."""
        self.world.send(item(id_, at, name, colour, price, op=op))

    @rule(id_=IDS, name=NAMES, colour=COLOURS, price=PRICES)
    def a_record_is_corrected_or_moves(self, id_: str, name: str | None, colour: str | None, price: int | None) -> None:
        self.world.send(item(id_, next(self.newest), name, colour, price))

    @rule(id_=IDS)
    def a_record_is_deleted(self, id_: str) -> None:
        self.world.send(item(id_, next(self.newest), op="D"))

    @rule(id_=IDS, at=st.integers(3, 5))
    def a_tie_arrives(self, id_: str, at: int) -> None:
        self.world.send(item(id_, at, "x"), item(id_, at, "y"), item(id_, at, None, None, 2))

    @rule(id_=IDS)
    def something_arrives_twice_and_something_broken(self, id_: str) -> None:
        at = next(self.newest)
        self.world.send(item(id_, at), item(id_, at), "broken", item(None, at))

    @rule(percent=st.integers(1, 3))
    def the_rate_changes(self, percent: int) -> None:
        self.world.rate(percent, at=next(self.newest))

    @rule(fault=FAULTS)
    def run(self, fault: Fault) -> None:
        self.world.run(fail=failing(fault))
        self.moved = True

    @rule(name=st.sampled_from(["name = 'x'", "colour is null"]), fault=FAULTS)
    def invalidate(self, name: str, fault: Fault) -> None:
        self._survive(lambda: self.world.invalidate(name, failing(fault)))

    @rule(name=st.sampled_from(["names", "item", "told"]), fault=FAULTS)
    def backfill(self, name: str, fault: Fault) -> None:
        self.world.backfill(name, failing(fault))
        self.moved = True

    @rule(factor=st.sampled_from([1, 1_000, 1_000_000]))
    def the_configuration_changes(self, factor: int) -> None:
        """So far apart that no row is equal by both: one that is keeps the older configuration, and is right by the newer."""
        self.world.factor = factor

    @rule()
    def a_job_is_added_or_removed(self) -> None:
        self.world.colours = not self.world.colours

    @rule(point=st.sampled_from(RUN_POINTS), nth=st.integers(1, 5), sends=st.booleans(), id_=IDS)
    def another_dispatcher_takes_over(self, point: str, nth: int, sends: bool, id_: str) -> None:
        """A run stands still past its lease, another does its work and more, then the first goes on."""

        def other() -> None:
            if sends:
                self.world.send(item(id_, next(self.newest), "y"), "broken too")
            self.world.another(self.world.run)

        self.fate.meanwhile = other
        self.world.run(fail=f"{soon(point, nth=nth)}=call")
        self.fate.meanwhile = None
        self.moved = True

    @rule(
        dataset=st.sampled_from(["events", "item_facts", "item_quarantine", "item", "names", "told"]),
        point=st.sampled_from(RUN_POINTS),
        nth=st.integers(1, 6),
    )
    def a_write_arrives_after_its_process_died(self, dataset: str, point: str, nth: int) -> None:
        self.fate.holds_back = dataset
        self.world.run()
        self.fate.holds_back = None

        def arrive() -> None:
            self._survive(self.fate.arrive)

        self.fate.meanwhile = arrive
        self.world.run(fail=f"{soon(point, nth=nth)}=call")
        self.fate.meanwhile = None
        arrive()
        self.moved = True

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
            check_rest(self.world)
        finally:
            self.world.close()
            self.patch.undo()


_made: list[Saved] = []
_folders: list[tempfile.TemporaryDirectory[str]] = []


def folder() -> Path:
    if not _folders:
        _folders.append(tempfile.TemporaryDirectory(prefix="schedules-"))
    return Path(_folders[0].name)


def template() -> Saved:
    """The world that every schedule starts with, made once."""
    if not _made:
        fate = Fate()
        with pytest.MonkeyPatch.context() as patch:
            fate.install(patch)
            world = World(folder() / "first", fate)
            world.send(item("a", 4), item("b", 4, "y"), item("c", 4, None, None, None), "broken")
            world.settle_down()
            check_rest(world)
            _made.append(Saved(world, folder() / "saved"))
    return _made[0]


@pytest.fixture(autouse=True)
def _cleared() -> Any:
    yield
    _made.clear()
    while _folders:
        _folders.pop().cleanup()


def test_no_schedule_breaks_a_law(say: Callable[[str], None]) -> None:
    """When faults stop all work drains, and every law holds."""
    chosen = settings(
        max_examples=SCHEDULES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize="STRANDLINE_SCHEDULES" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    run_state_machine_as_test(Schedules, settings=chosen)

    say(f"schedules {SCHEDULES}, violations 0")
