"""The crash loop and the schedules on Spark and real Delta tables. Only `make test-faults` runs them.

They take long.
"""

import os
import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.lake.log import read_entries
from strandline.model.commits import Operation

from .crash_loop import Told, tell, wrecks_of
from .fate import Fate
from .kinds.kind import Step
from .processes import all_faults
from .spark_world import SparkDesk, SparkFate, SparkLedger, SparkRooms, SparkWorld
from .story import SHORT_DESK_STORY, SHORT_LEDGER_STORY, SHORT_ROOMS_STORY, SHORT_STORY
from .test_schedules import Ground, run_schedules, schedules_of

pytestmark = [pytest.mark.spark, pytest.mark.faults, all_faults]

SCHEDULES = int(os.environ.get("STRANDLINE_SPARK_SCHEDULES", "30"))
STEPS = (*SHORT_STORY, *SHORT_LEDGER_STORY, *SHORT_ROOMS_STORY, *SHORT_DESK_STORY)
"""Of all worlds."""
_tried: defaultdict[str, int] = defaultdict(int)
"""By step: the kills."""
_recovered: list[float] = []
"""Seconds until all work was done, after each kill that left a different wreck.

Spark was already running.
"""


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    made = SparkFate()
    made.install(monkeypatch)
    return made


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The stories of all worlds."""
    with (
        tell(SHORT_STORY, tmp_path_factory.mktemp("story"), SparkFate, SparkWorld) as steps,
        tell(SHORT_LEDGER_STORY, tmp_path_factory.mktemp("ledger"), SparkFate, SparkLedger) as of_ledger,
        tell(SHORT_ROOMS_STORY, tmp_path_factory.mktemp("rooms"), SparkFate, SparkRooms) as of_rooms,
        tell(SHORT_DESK_STORY, tmp_path_factory.mktemp("desk"), SparkFate, SparkDesk) as of_desk,
    ):
        yield steps | of_ledger | of_rooms | of_desk


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
def test_a_kill_at_any_hit_is_mended_by_the_next_runs(
    step: Step, told: Told, fate: Fate, tmp_path: Path
) -> None:
    for nth, wreck in enumerate(wrecks_of(step, told[step.name][0], fate, tmp_path)):
        _recovered.append(wreck.recover(tmp_path / str(nth), fate))
        _tried[step.name] += len(wreck.hits)
        shutil.rmtree(tmp_path / str(nth))


def test_the_loop_tried_every_hit(
    told: Told, request: pytest.FixtureRequest, say: Callable[[str], None]
) -> None:
    if sum(
        item.path == Path(__file__) and "kill_at_any_hit" in item.name for item in request.session.items
    ) < len(STEPS):
        pytest.skip("a part of the loop was chosen")
    hits = {step: len(hits) for step, (_, hits) in told.items() if hits}

    say(
        f"with Spark: kills tried {sum(_tried.values())} of {sum(hits.values())} "
        f"({len(_recovered)} different wrecks), laws broken 0"
    )
    say(
        f"with Spark: recovered in {statistics.median(_recovered):.1f} s (median), "
        f"{max(_recovered):.1f} s (slowest); wanted: under 10 s"
    )

    assert _tried == hits


def test_the_story_uses_every_write_primitive(told: Told) -> None:
    lake = told[SHORT_STORY[0].name][0].aside.parent / "world" / ".strandline" / "lake"
    entries = [
        e for table in lake.iterdir() if (table / "_delta_log").is_dir() for e in read_entries(str(table), -1)
    ]

    assert {e.metadata.operation for e in entries if e.metadata} >= set(Operation) - {
        Operation.FENCE,
        Operation.ADOPT,
    }


@pytest.mark.parametrize("world", [SparkWorld, SparkLedger, SparkRooms, SparkDesk])
def test_no_schedule_breaks_a_law(world: type[SparkWorld], say: Callable[[str], None]) -> None:
    machine = schedules_of(Ground(SparkFate, world))

    run_schedules(machine, SCHEDULES, 6, chosen_anew="STRANDLINE_SPARK_SCHEDULES" in os.environ)

    say(f"with Spark: schedules {SCHEDULES} of {world.__name__}, violations 0")
