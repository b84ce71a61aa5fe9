"""The outbox under faults: kills while it is filled and while webhooks are sent, lost and old catalogs.

`STRANDLINE_FAULTS=all` kills at every hit of the story, `STRANDLINE_SCHEDULES` says how many schedules are
played. A law must break under each mutant.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from strandline.catalog import enqueue_deliveries
from strandline.catalog import outbox as catalog_outbox
from strandline.dispatch import failpoints, lane, outbox
from strandline.lake import appended as lake_appended
from strandline.lake import events as lake_events
from strandline.lake.events import RecordedEvents, read_told_events
from strandline.lake.log import AddedFile, read_entries
from strandline.lake.plain_values import plain_rows
from strandline.model import events as model_events
from strandline.model.deliveries import Attempt, Outcome
from strandline.model.events import Event, make_body
from tests.events import Fired

from .fate import Fate, soon
from .outbox_world import POINTS, SHORT, STORY, OutboxWorld, is_clean, play_at_random, play_deaths

pytestmark = pytest.mark.faults

EVERY = 1 if os.environ.get("STRANDLINE_FAULTS") == "all" else 12
SCHEDULES = int(os.environ.get("STRANDLINE_SCHEDULES", "300")) // 10
STEPS = 12
Hit = tuple[str, str, int]


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    made = Fate()
    made.install(monkeypatch)
    return made


@pytest.fixture
def make_world(worlds: Path, fate: Fate) -> Iterator[Callable[[], OutboxWorld]]:
    made: list[OutboxWorld] = []

    def make() -> OutboxWorld:
        made.append(OutboxWorld(worlds / "outbox", fate))
        return made[-1]

    yield make
    for world in made:
        world.close()


def find_hits(world: OutboxWorld) -> list[Hit]:
    """The hits of every step of the story, played without a fault."""
    found: list[Hit] = []
    for name, step in STORY.items():
        before = {point: failpoints.hits[point] for point in POINTS}
        step(world, "")
        world.check()
        for point in POINTS:
            found += [(name, point, nth + 1) for nth in range(failpoints.hits[point] - before[point])]
    world.rest()
    return found


def kill_at(world: OutboxWorld, hit: Hit) -> None:
    """The story with a kill at one hit."""
    name, point, nth = hit
    for step_name, step in STORY.items():
        step(world, f"{soon(point, nth=nth)}=kill" if step_name == name else "")
        world.check()
        if step_name == name:
            world.wait()
    world.rest()


def test_without_a_fault_everything_comes_once(make_world: Callable[[], OutboxWorld]) -> None:
    world = make_world()
    world.record(Fired(key="a"), Fired(key="b"), Fired(key="a", match=False))
    world.record(Fired(key="c"), dies_before=True)

    world.fill()
    world.send()
    world.rest()

    assert is_clean(world)


def test_a_kill_at_a_hit_of_the_story_loses_nothing(
    make_world: Callable[[], OutboxWorld], say: Callable[[str], None]
) -> None:
    hits = find_hits(make_world())
    assert {point for _, point, _ in hits} == set(POINTS)

    for hit in hits[::EVERY]:
        kill_at(make_world(), hit)

    say(f"outbox: killed at {len(hits[::EVERY])} of {len(hits)} hits")


@pytest.mark.parametrize("part", range(3))
def test_schedules_of_faults_lose_nothing(make_world: Callable[[], OutboxWorld], part: int) -> None:
    for seed in range(part, SCHEDULES, 3):
        try:
            play_at_random(make_world(), seed, STEPS)
        except AssertionError as error:
            error.add_note(f"schedule {seed}")
            raise


def test_what_died_or_is_forgotten_comes_again_with_the_same_id_and_bytes(
    worlds: Path, fate: Fate, say: Callable[[str], None]
) -> None:
    ended = Counter[str]()
    for seed in range(SCHEDULES):
        world = OutboxWorld(worlds / "deaths", fate, SHORT)
        try:
            ended += play_deaths(world, seed, STEPS)
        except AssertionError as error:
            error.add_note(f"schedule {seed}")
            raise
        finally:
            world.close()

    assert {"dead", "delivered", "held", "pending"} <= ended.keys()
    say(f"outbox: {SCHEDULES} schedules in which deliveries die and are replayed, laws broken 0")


Mutant = Callable[[pytest.MonkeyPatch], None]


def cursor_moved_without_its_rows(patch: pytest.MonkeyPatch) -> None:
    """In a transaction of its own, before that of the rows."""

    def enqueue(catalog: Any, trigger: str, before: Any, after: Any, owed: Any) -> int:
        enqueue_deliveries(catalog, trigger, before, after, ())
        failpoints.reach("after-fill", trigger)
        return enqueue_deliveries(catalog, trigger, after, after, owed)

    patch.setattr(outbox, "enqueue_deliveries", enqueue)


def rows_without_their_cursor(patch: pytest.MonkeyPatch) -> None:
    """It would be harmless, if rows were not owed again with another id each time."""
    number = iter(range(10**6))

    def insert(connection: Any, rows: Any, held: Any) -> int:
        numbered = [{**row, "id": f"{row['id']}-{next(number)}"} for row in rows]
        return really(connection, numbered, held)

    really = catalog_outbox._insert
    patch.setattr(catalog_outbox, "_insert", insert)


def a_quiet_event_is_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lake_events, "_TOLD", pyarrow.dataset.scalar(True))


def an_event_before_its_commit(patch: pytest.MonkeyPatch) -> None:
    """What lies in the folder counts, whether a commit names it or not."""

    def entries(uri: str, after: int) -> Iterator[Any]:
        for entry in read_entries(uri, after):
            files = sorted(path.name for path in Path(uri).glob("*.parquet"))
            added = tuple(AddedFile(path=name, rows=100, bytes=10**9) for name in files)
            yield replace(entry, added=added)

    patch.setattr(lake_events, "read_entries", entries)


def a_body_with_the_time_of_its_filling(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(outbox, "make_body", lambda event, _: make_body(event, datetime.now(UTC)))


def an_id_without_n(patch: pytest.MonkeyPatch) -> None:
    really = model_events.make_event_id
    patch.setattr(model_events, "make_event_id", lambda trigger, key, at, _n=1: really(trigger, key, at))


def a_lost_catalog_starts_at_the_end(patch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> Iterator[tuple[tuple[Event, datetime], ...]]:
        yield from ()

    patch.setattr(outbox, "read_recent_events", nothing)


def a_part_of_a_commit_moves_past_it(patch: pytest.MonkeyPatch) -> None:
    def read(uri: str, trigger: str, after: int, upto: int, most: int) -> Iterator[RecordedEvents]:
        for part in read_told_events(uri, trigger, after, upto, most):
            yield replace(part, upto=upto)

    patch.setattr(outbox, "read_told_events", read)


def events_in_the_order_of_the_file(patch: pytest.MonkeyPatch) -> None:
    class Unsorted(list[Any]):
        def sort(self, **_: Any) -> None:
            pass

    patch.setattr(lake_appended, "plain_rows", lambda table: Unsorted(plain_rows(table)))


def an_outcome_before_its_attempt(patch: pytest.MonkeyPatch) -> None:
    """What is claimed counts as delivered: an attempt that never ended is not made again."""
    really = catalog_outbox.claim_deliveries

    def claim(catalog: Any, *more: Any) -> Any:
        claims = really(catalog, *more)
        done = [Attempt(claim=one, outcome=Outcome(delivered=True)) for one in claims]
        catalog_outbox.record_outcomes(catalog, more[0], done)
        return claims

    patch.setattr(lane, "claim_deliveries", claim)


MUTANTS: tuple[Mutant, ...] = (
    cursor_moved_without_its_rows,
    rows_without_their_cursor,
    a_quiet_event_is_delivered,
    an_event_before_its_commit,
    a_body_with_the_time_of_its_filling,
    an_id_without_n,
    a_lost_catalog_starts_at_the_end,
    a_part_of_a_commit_moves_past_it,
    events_in_the_order_of_the_file,
    an_outcome_before_its_attempt,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_mutant_of_the_outbox_is_killed(
    mutant: Mutant,
    make_world: Callable[[], OutboxWorld],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hits = find_hits(make_world())
    mutant(monkeypatch)

    def all_faults() -> None:
        for hit in hits:
            kill_at(make_world(), hit)

    with pytest.raises(AssertionError):
        all_faults()
