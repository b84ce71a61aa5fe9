"""Random schedules of what users and fate do, against plain Python over the lines that were sent.

`STRANDLINE_SCHEDULES=10000` runs more of them, each time others.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
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
from .laws import check_always, check_rest
from .story import block, item
from .world import Saved, World, new_catalog

pytestmark = pytest.mark.faults

SCHEDULES = int(os.environ.get("STRANDLINE_SCHEDULES", "300"))
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
NAMES, COLOURS, PRICES = (
    st.sampled_from(["x", "y", None]),
    st.sampled_from(["red", None]),
    st.sampled_from([1, 2, None]),
)
IDS = st.sampled_from("abcd")
DATASETS = st.sampled_from(
    ["events", "item_facts", "item", "names", "colours", "told", "block_facts", "main", "stretches"]
)
PARTITIONS = st.sampled_from(["0-2", "2-4", "4-6"])
NEWS = st.sampled_from([None, "item", "rate", "blocks"])
SELECTIONS = st.sampled_from(["", "", "rates rate names", "names+", "events item+", "headers block main"])
FAULTS = st.one_of(
    st.just(None),
    st.tuples(st.just("kill"), st.sampled_from(RUN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("raise"), st.sampled_from(RUN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("lose"), st.just("after-write"), st.integers(1, 5)),
)
MAINTAIN_FAULTS = st.one_of(
    st.just(None),
    st.tuples(st.just("kill"), st.sampled_from(MAINTAIN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("raise"), st.sampled_from(MAINTAIN_POINTS), st.integers(1, 5)),
    st.tuples(st.just("lose"), st.just("after-write"), st.integers(1, 5)),
)
Fault = tuple[str, str, int] | None


def failing(fault: Fault) -> str:
    return f"{soon(fault[1], nth=fault[2])}={fault[0]}" if fault else ""


class Ground:
    """Where schedules start: a world after its first run, made once."""

    def __init__(self, fate: type[Fate], kind: type[World]) -> None:
        self.fate, self.kind = fate, kind
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._saved: Saved | None = None
        self._numbers = itertools.count()

    def restore(self, fate: Fate) -> World:
        folder = Path(self._folder.name) if self._folder else self._make()
        assert self._saved is not None
        return self._saved.restore(
            folder / (f"world-{next(self._numbers)}" if self.kind.needs_new_folder else "world"), fate
        )

    def _make(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="schedules-")
        folder, fate = Path(self._folder.name), self.fate()
        with pytest.MonkeyPatch.context() as patch:
            fate.install(patch)
            world = self.kind(folder / "first", fate)
            world.send(item("a", 4), item("b", 4, "y"), item("c", 4, None, None, None), "broken")
            world.announce(block("a2", "a1", 2), block("a3", "a2", 3))
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
        self.newest = itertools.count(10)
        self.tips = {"a": block("a3", "a2", 3), "b": block("a1", "a0", 1)}
        """By branch: its last block."""
        self.moved = False
        """Whether something happened that the laws have not been checked after."""
        self.rebuilt = True

    @initialize(one_in_four=st.integers(0, 3))
    def a_catalog_is_filled_from_the_tables_at_the_end(self, one_in_four: int) -> None:
        self.rebuilt = one_in_four == 0

    @rule(
        id_=IDS,
        name=NAMES,
        colour=COLOURS,
        price=PRICES,
        at=st.integers(0, 9),
        op=st.sampled_from([None, None, "D"]),
    )
    def a_fact_arrives(
        self, id_: str, name: str | None, colour: str | None, price: int | None, at: int, op: str | None
    ) -> None:
        """Late, early, a tie or a duplicate: whatever it turns out to be."""
        self.world.send(item(id_, at, name, colour, price, op=op))

    @rule(id_=IDS, name=NAMES, colour=COLOURS, price=PRICES)
    def a_record_is_corrected_or_moves(
        self, id_: str, name: str | None, colour: str | None, price: int | None
    ) -> None:
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

    @rule(branch=st.sampled_from("ab"), length=st.integers(1, 3), backwards=st.booleans())
    def a_branch_overtakes(self, branch: str, length: int, backwards: bool) -> None:
        """The heaviest head is of this branch now: the next blocks of the chain, or a reorg, or one back."""
        made = []
        for _ in range(length):
            below, weight = self.tips[branch], next(self.newest)
            number = below["number"] + 1
            self.tips[branch] = {
                "number": number,
                "hash": f"{branch}{number}.{weight}",
                "parent": below["hash"],
                "weight": weight,
            }
            made.append(self.tips[branch])
        self.world.announce(*(reversed(made) if backwards else made))

    @rule(
        hash_=st.sampled_from(["a0", "a1", "a2", "b2", "b3", "a4"]),
        below=st.sampled_from("abx"),
        weight=st.integers(1, 12),
    )
    def a_block_arrives(self, hash_: str, below: str, weight: int) -> None:
        """Below all others, again, on a side branch, or waiting for one that never comes."""
        self.world.announce(block(hash_, f"{below}{int(hash_[1:]) - 1}", weight), "broken")

    @rule(fault=FAULTS)
    def run(self, fault: Fault) -> None:
        self.world.run(fail=failing(fault))
        self.moved = True

    @rule(name=st.sampled_from(["name = 'x'", "colour is null"]), fault=FAULTS)
    def invalidate(self, name: str, fault: Fault) -> None:
        self._survive(lambda: self.world.invalidate(name, failing(fault)))

    @rule(name=PARTITIONS, fault=FAULTS)
    def invalidate_a_partition(self, name: str, fault: Fault) -> None:
        self._survive(lambda: self.world.invalidate_partition(name, failing(fault)))

    @rule(names=st.lists(PARTITIONS, min_size=1, max_size=2), fault=FAULTS)
    def backfill_partitions(self, names: list[str], fault: Fault) -> None:
        """One that was never built is refused."""
        self._survive(lambda: self.world.backfill("stretches", failing(fault), partitions=tuple(names)))

    @rule(fault=MAINTAIN_FAULTS)
    def maintain(self, fault: Fault) -> None:
        self.world.maintain(failing(fault))
        self.moved = True

    @rule(name=st.sampled_from(["names", "item", "told", "main", "stretches"]), fault=FAULTS)
    def backfill(self, name: str, fault: Fault) -> None:
        self.world.backfill(name, failing(fault))
        self.moved = True

    @rule(factor=st.sampled_from([1, 1_000, 1_000_000]))
    def the_configuration_changes(self, factor: int) -> None:
        """So far apart that no row is equal by both: one that is keeps the older configuration, and is right by the newer."""
        self.world.factor = factor

    @rule()
    def the_unique_key_changes(self) -> None:
        """What was appended by another is frozen until a backfill."""
        self.world.unique = "price, name" if self.world.unique == "name, price" else "name, price"

    @rule()
    def a_job_is_added_or_removed(self) -> None:
        self.world.colours = not self.world.colours

    @rule(point=st.sampled_from(RUN_POINTS), nth=st.integers(1, 9), news=NEWS, select=SELECTIONS, id_=IDS)
    def another_dispatcher_takes_over(
        self, point: str, nth: int, news: str | None, select: str, id_: str
    ) -> None:
        """A run stands still past its lease, another does its work, or a part, and more; then the first goes on."""

        def other() -> None:
            at = next(self.newest)
            match news:
                case "item":
                    self.world.send(item(id_, at, "y"), "broken too")
                case "rate":
                    self.world.rate(at, at=at)
                case "blocks":
                    self.a_branch_overtakes("b", 1, False)
            self.world.another(lambda: self.world.run(RunRequest(select=select)))

        self.fate.meanwhile = other
        self.world.run(fail=f"{soon(point, nth=nth)}=call")
        self.fate.meanwhile = None
        self.moved = True

    @rule(point=st.sampled_from(MAINTAIN_POINTS), nth=st.integers(1, 5), id_=IDS)
    def a_dispatcher_takes_over_from_maintain(self, point: str, nth: int, id_: str) -> None:
        def other() -> None:
            self.world.send(item(id_, next(self.newest), "y"))
            self.world.another(self.world.run)

        self.fate.meanwhile = other
        self.world.maintain(f"{soon(point, nth=nth)}=call")
        self.fate.meanwhile = None
        self.moved = True

    @precondition(lambda self: self.fate.sends_late)
    @rule(
        dataset=st.sampled_from(
            ["events", "item_facts", "item_quarantine", "item", "names", "told", "main", "stretches"]
        ),
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
            check_rest(self.world, rebuilt=self.rebuilt)
        finally:
            self.world.close()
            self.patch.undo()
            shutil.rmtree(self.world.folder)


class PlainSchedules(Schedules):
    ground = Ground(Fate, World)


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
    run_schedules(PlainSchedules, SCHEDULES, STEPS, chosen_anew="STRANDLINE_SCHEDULES" in os.environ)

    say(f"schedules {SCHEDULES}, violations 0")
