"""The crash loop without Spark: kill at a hit of the story, start again, run to rest, and every law holds.

Hits between which nothing is written leave the same wreck, which is started once. `STRANDLINE_FAULTS=all`
starts every wreck. Otherwise every eighth is started, in each step others, so that each point has its turn.
"""

import itertools
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.catalog import acquire_lease, open_catalog, read_view
from strandline.dispatch import failpoints

from .crash_loop import Hit, Told, hits_of, recover, tell, wrecks_of
from .fate import Fate, Killed, soon
from .kinds import KINDS
from .kinds.changes.kind import LOGS
from .kinds.entity.data import HOUSE, ROOM
from .kinds.kind import Step
from .kinds.timeline.data import DAILY, HISTORY
from .kinds.trigger.kind import ALERT, EDITED
from .kinds.view.data import VIEW
from .story import (
    DESK_STORY,
    LEDGER_STORY,
    ROOMS_STORY,
    SHORT_LEDGER_STORY,
    SHORT_ROOMS_STORY,
    SHORT_STORY,
    STORY,
)
from .world import Ledger, PublishingDesk, Rooms, Saved, World

pytestmark = pytest.mark.faults

EVERY = 1 if os.environ.get("STRANDLINE_FAULTS") == "all" else 8
OWN_NODES = (
    {
        "ledger": (HISTORY, DAILY),
        "rooms": (ROOM, HOUSE),
        "desk": (VIEW, *LOGS.values(), ALERT, EDITED),
    }
    if EVERY > 1
    else {}
)
"""By world: only kills while one of these is worked on. All other kinds of node are in the register too."""
FIRSTS = 60 if EVERY == 1 else 3
PAIRS_EVERY = 1 if EVERY == 1 else 25
STORIES = {"register": STORY, "ledger": LEDGER_STORY, "rooms": ROOMS_STORY, "desk": DESK_STORY}
"""By world."""
STEPS = tuple(step for story in STORIES.values() for step in story)
"""Of all worlds."""
WORLDS = {step: name for name, story in STORIES.items() for step in story}
"""By step: its world."""
_tried = {"kills": 0, "wrecks": 0, "lost answers": 0, "pairs": 0}


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    made = Fate()
    made.install(monkeypatch)
    return made


@pytest.fixture(scope="module")
def told(worlds: Path) -> Iterator[Told]:
    """The stories of all worlds."""
    with (
        tell(STORY, worlds / "story", Fate, World) as steps,
        tell(LEDGER_STORY, worlds / "ledger", Fate, Ledger) as of_ledger,
        tell(ROOMS_STORY, worlds / "rooms", Fate, Rooms) as of_rooms,
        tell(DESK_STORY, worlds / "desk", Fate, PublishingDesk) as of_desk,
    ):
        yield steps | of_ledger | of_rooms | of_desk


@pytest.fixture
def folder(worlds: Path) -> Iterator[Path]:
    """Empty at first."""
    played = worlds / "played"
    played.mkdir()
    yield played
    shutil.rmtree(played)


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
def test_a_kill_at_any_hit_is_mended_by_the_next_runs(
    step: Step, told: Told, fate: Fate, folder: Path
) -> None:
    saved, nodes = told[step.name][0], OWN_NODES.get(WORLDS[step], ())
    for wreck in wrecks_of(step, saved, fate, folder / "wrecks", EVERY, STEPS.index(step), nodes):
        wreck.recover(folder / "world", fate)
        _tried["wrecks"] += 1
        _tried["kills"] += len(wreck.hits)


@pytest.mark.parametrize(
    "step", [s for s in STEPS if not s.name.startswith("invalidation")], ids=lambda s: s.name
)
def test_a_lost_answer_counts_in_the_same_run(step: Step, told: Told, fate: Fate, folder: Path) -> None:
    saved, hits = told[step.name]

    for point, node, nth in _choose_answers(step, hits):
        world = saved.restore(folder / "world", fate)
        outcome = step.act(world, f"{soon(point, node, nth)}=lose")

        assert outcome is not None
        assert outcome.exit_code == step.exit_code, (point, node, nth, outcome)
        assert bool(world.plan().tasks) == step.leaves_work, "it is done, and not done again"
        recover(world, rebuilt=EVERY == 1)
        _tried["lost answers"] += 1


def _choose_answers(step: Step, hits: list[Hit]) -> list[Hit]:
    writes = [hit for hit in hits if hit[0] == "after-write"]
    if nodes := OWN_NODES.get(WORLDS[step]):
        return [hit for hit in writes if hit[1] in nodes][:: min(EVERY, 4)]
    return writes[:: min(EVERY, 4)]


def test_a_kill_during_the_recovery_from_a_kill_is_mended_too(told: Told, fate: Fate, folder: Path) -> None:
    """Every hit of the run after a kill behind the write (it fences), and pairs from the whole story."""
    moving = next(s for s in STORY if s.name == "key move")
    firsts = [(moving, ("after-write", "item_facts", 1))]
    chance = random.Random(5)
    while len(firsts) < FIRSTS:
        step = chance.choice(STEPS)
        firsts += [(step, chance.choice(told[step.name][1]))] if told[step.name][1] else []

    for step, one in firsts:
        saved = told[step.name][0]
        every = PAIRS_EVERY * (1 if step is moving else chance.randint(10, 30))
        for two in _hits_after(step, saved, one, fate, folder)[::every]:
            world = saved.restore(folder / "world", fate)
            step.act(world, f"{soon(*one)}=kill")
            assert world.run(fail=f"{soon(*two)}=kill") is None, (one, two)
            recover(world)
            _tried["pairs"] += 1


def _hits_after(step: Step, saved: Saved, first: Hit, fate: Fate, folder: Path) -> list[Hit]:
    """The hits of the run that comes after a kill."""
    world = saved.restore(folder / "world", fate)
    step.act(world, f"{soon(*first)}=kill")
    found = hits_of(world, Step(name="again"))
    world.close()
    return found


def test_each_step_has_a_name_of_its_own_and_joins_a_step_that_is_there() -> None:
    """The kinds do not know of each other's steps. One that joins nothing would be missing on Spark."""
    names = Counter(step.name for step in STEPS)

    assert max(names.values()) == 1, names
    assert {step.told_with for step in STORY} - {""} <= {step.name for step in SHORT_STORY}
    assert {step.told_with for step in LEDGER_STORY} - {""} <= {step.name for step in SHORT_LEDGER_STORY}
    assert {step.told_with for step in ROOMS_STORY} - {""} <= {step.name for step in SHORT_ROOMS_STORY}


def test_the_stories_write_a_table_of_every_kind(told: Told, fate: Fate, folder: Path) -> None:
    """A kind whose tables no step writes would never be killed."""
    kinds = set()
    for story in STORIES.values():
        project = told[story[0].name][0].restore(folder / "world", fate).project
        hits = [hit for step in story for hit in told[step.name][1]]
        kinds |= {str(project.get(node).kind) for point, node, _ in hits if point == "after-write"}

    assert kinds == {kind.name for kind in KINDS}


@pytest.mark.parametrize("point", ["before-migrate", "after-migrate"])
def test_a_killed_migration_has_changed_nothing(point: str, fate: Fate, folder: Path) -> None:
    address = f"sqlite:///{folder}/catalog.db"

    with fate.asked(f"{soon(point)}=kill"), pytest.raises(Killed):
        open_catalog(address, failpoints.reach)

    fate.dead = False
    catalog = open_catalog(address, failpoints.reach)
    assert read_view(catalog).nodes == {}
    catalog.close()


def test_whatever_is_written_makes_another_wreck(fate: Fate, folder: Path) -> None:
    world = World(folder / "world", fate)
    file = next((world.folder / "rates").iterdir())
    seen = [world.fingerprint()]
    assert world.fingerprint() == seen[0]

    file.write_bytes(bytes(reversed(file.read_bytes())))
    seen.append(world.fingerprint())
    file.rename(file.with_suffix(".old"))
    seen.append(world.fingerprint())
    acquire_lease(world.catalog, "names", "somebody", 60.0, 0, break_others=False)
    seen.append(world.fingerprint())

    assert all(one != other for one, other in itertools.combinations(seen, 2))


def test_the_loop_tried_every_hit(
    told: Told, request: pytest.FixtureRequest, say: Callable[[str], None]
) -> None:
    """The last of this file; says how much was tried."""
    if sum("kill_at_any_hit" in item.name for item in request.session.items) < len(STEPS):
        pytest.skip("a part of the loop was chosen")
    nodes_by_step = {step.name: OWN_NODES.get(WORLDS[step], ()) for step in STEPS}
    hits = sum(
        not nodes_by_step[name] or node in nodes_by_step[name]
        for name, (_, hits) in told.items()
        for _, node, _ in hits
    )

    say(
        f"kills tried {_tried['kills']} of {hits} ({_tried['wrecks']} different wrecks), "
        f"lost answers {_tried['lost answers']}, pairs {_tried['pairs']}, laws broken 0"
    )

    assert _tried["kills"] >= hits // (EVERY + 1)
    assert _tried["kills"] == hits or EVERY > 1
    assert hits > 1000, "the story has become short"
