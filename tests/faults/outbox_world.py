"""A trigger's events, an outbox and two receivers, on which fate does what it does. No Spark, no network.

Every part of the engine from the events table to the sender is the real one. Receivers are in memory.
"""

import asyncio
import hashlib
import json
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select

from strandline.catalog import (
    Catalog,
    DeliveryFilter,
    count_deliveries,
    enable_endpoint,
    find_delivery_cursor,
    forget_deliveries,
    has_delivery,
    replay_deliveries,
    replay_delivery,
)
from strandline.catalog.tables import deliveries
from strandline.dispatch import failpoints, outbox
from strandline.dispatch.deliver import send_due
from strandline.dispatch.lane import Pace
from strandline.dispatch.replay import RemovedRange, owe_removed, owe_removed_one
from strandline.lake.location import Lake
from strandline.model.deliveries import Outcome
from strandline.model.endpoints import Endpoint
from strandline.model.errors import CallError
from strandline.model.node import Project
from strandline.publish.trigger.event_file import EVENT_SCHEMA
from tests.contract.test_outbox import pass_time
from tests.events import EventLog, Fired
from tests.unit.declare.publishing import load_trades

from .evidence import require
from .fate import START, Fate, Killed
from .world import _copy_database, give_up, new_catalog

TRIGGER = "large_trade_alert"
LONG, SHORT = ", ".join(["1 min"] * 40), "1 min, 2 min"
"""Pauses between attempts. With the first, nothing dies before a schedule of the suite ends."""
KEEP = timedelta(hours=1)
"""What ended longer ago may be forgotten."""
_BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)
ENDPOINTS = ("ops", "desk")
POINTS = ("before-fill", "after-fill", "before-send", "after-send")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as it was committed, by plain Python alone."""

    id: str
    key: str
    body: bytes
    version: int
    quiet: bool


@dataclass(slots=True)
class Receivers:
    """What came, and what each endpoint answers: a status, or 0 for no answer."""

    came: list[tuple[str, str, bytes]] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDPOINTS, 200))


class OutboxWorld:
    def __init__(self, folder: Path, fate: Fate, retry: str = LONG) -> None:
        self.fate, self.catalog, self.receivers = fate, new_catalog(), Receivers()
        self.project = _load(folder, retry)
        lake = folder / f"lake-{uuid.uuid4().hex}"
        self.lake = Lake(root=str(lake))
        self.log = EventLog(trigger=TRIGGER, uri=lake / TRIGGER)
        self.recorded: list[Recorded] = []
        self.nothing_dies = retry == LONG
        self.clock = START
        self._counts: Counter[tuple[str, int]] = Counter()
        self._kept: Catalog | None = None
        self.fill()

    @property
    def told(self) -> list[Recorded]:
        return [event for event in self.recorded if not event.quiet]

    def record(self, *events: Fired, dies_before: bool = False) -> None:
        """A commit of events. `dies_before`: an earlier attempt has left its file and no commit."""
        at = self._tick()
        numbered = [self._number(event, dry=dies_before) for event in events]
        if dies_before:
            rows = [self.log._row(event, 0, nth, at) for nth, event in enumerate(numbered)]
            self.log.uri.mkdir(parents=True, exist_ok=True)
            name = f"part-{uuid.uuid4()}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, EVENT_SCHEMA), self.log.uri / name)
            self.record(*events)
            return
        version = self.log.append(*numbered, at=at, shuffled=True)
        self.recorded += [_recorded(event, at, version) for event in numbered]

    def _number(self, event: Fired, *, dry: bool) -> Fired:
        place = (event.key, event.timestamp)
        if not dry:
            self._counts[place] += 1
        return Fired(
            key=event.key,
            timestamp=event.timestamp,
            n=self._counts[place] + dry,
            match=event.match,
            quiet=event.quiet,
            data=event.data,
        )

    def fill(self, fail: str = "") -> None:
        self._do(
            lambda: outbox.fill_outbox(self.project, self.catalog, self.lake, lambda: self.clock, 2), fail
        )

    def send(self, fail: str = "") -> None:
        pace = Pace(now=lambda: self.clock)
        self._do(
            lambda: asyncio.run(
                send_due(self.catalog, self.project.endpoints, "sender", self._make_sender, pace)
            ),
            fail,
        )

    def lose_catalog(self) -> None:
        self._use(new_catalog())

    def keep_catalog(self) -> None:
        self._kept = new_catalog()
        _copy_database(self.catalog, self._kept)

    def put_back_catalog(self) -> None:
        """As it was when it was kept."""
        if self._kept is not None:
            catalog = new_catalog()
            _copy_database(self._kept, catalog)
            self._use(catalog)

    def forget(self) -> None:
        """What `maintain` does with deliveries that ended long ago."""
        forget_deliveries(self.catalog, KEEP)

    def replay(self, event: Recorded, endpoint: str) -> None:
        """Owe one delivery again. One that has not ended is owed already, and one of no event is unknown."""
        name = f"{event.id}-{endpoint}"
        with suppress(CallError):
            if has_delivery(self.catalog, name) or not owe_removed_one(
                self.project, self.catalog, self.lake, name
            ):
                replay_delivery(self.catalog, name, ENDPOINTS)

    def replay_all(self) -> None:
        """Owe again all that ended, also what is forgotten."""
        replay_deliveries(self.catalog, DeliveryFilter(since=_BEFORE_ALL), ENDPOINTS)
        removed = RemovedRange(since=_BEFORE_ALL, until=self.clock - KEEP)
        owe_removed(self.project, self.catalog, self.lake, removed)

    def compact(self) -> None:
        if self.log.version >= 0:
            self.log.compact()

    def wait(self, by: timedelta = timedelta(minutes=2)) -> None:
        """What was claimed by the dead runs out, and what failed is due again."""
        self.clock += by
        pass_time(self.catalog, by)

    def rest(self) -> None:
        """Receivers take everything, and what is owed is sent. Then every law holds, and nothing is left."""
        self.receivers.answers = dict.fromkeys(ENDPOINTS, 200)
        for _ in range(4):
            self.fill()
            for endpoint in ENDPOINTS:
                enable_endpoint(self.catalog, endpoint)
            self.wait()
            self.send()
            self.check()
        left = {str(status) for status in count_deliveries(self.catalog, DeliveryFilter())}
        require(left <= {"delivered"}, "all that is owed is delivered", left)
        for endpoint in ENDPOINTS:
            ids = {event_id for where, event_id, _ in self.receivers.came if where == endpoint}
            missing = [event for event in self.told if event.id not in ids]
            require(not missing, "none is lost", endpoint, missing)

    def rest_after_deaths(self) -> None:
        """Receivers take everything. Whatever died or is forgotten, a replay brings every event once more."""
        self.receivers.answers = dict.fromkeys(ENDPOINTS, 200)
        before = 0
        for nth in range(6):
            self.fill()
            for endpoint in ENDPOINTS:
                enable_endpoint(self.catalog, endpoint)
            self.wait(timedelta(hours=2))
            self.send()
            if nth == 2:
                before = len(self.receivers.came)
                self.replay_all()
        self.check()
        for endpoint in ENDPOINTS:
            ids = {event_id for where, event_id, _ in self.receivers.came[before:] if where == endpoint}
            missing = [event for event in self.told if event.id not in ids]
            require(not missing, "a replay brings everything once more", endpoint, missing)

    def check(self) -> None:
        """What holds at any moment, whatever died."""
        known = {event.id: event for event in self.recorded}
        require(len(known) == len(self.recorded), "L12 different events have different ids")
        first: dict[tuple[str, str], list[int]] = defaultdict(list)
        seen: set[tuple[str, str]] = set()
        for endpoint, event_id, body in self.receivers.came:
            event = known.get(event_id)
            require(event is not None, "only what was committed is sent", event_id, body)
            assert event is not None
            require(body == event.body, "no id has two bodies", body, event.body)
            require(not event.quiet, "nobody is told about a quiet event", body)
            if (endpoint, event_id) not in seen:
                seen.add((endpoint, event_id))
                first[endpoint, event.key].append(self.recorded.index(event))
        if self.nothing_dies:
            for (endpoint, key), places in first.items():
                if endpoint == "ops":
                    require(places == sorted(places), "those of a key come in order", key, places)
            self._check_cursor()

    def _check_cursor(self) -> None:
        cursor = find_delivery_cursor(self.catalog, TRIGGER)
        if cursor is None or self.log.version < 0 or cursor[0] != self.log.id:
            return
        require(cursor[1] <= self.log.version, "L9 cursor", cursor)
        with self.catalog.reading() as connection:
            rows = {row[0] for row in connection.execute(select(deliveries.c.id))}
        passed = [event for event in self.told if event.version <= cursor[1]]
        missing = [e.id for e in passed for name in ENDPOINTS if f"{e.id}-{name}" not in rows]
        require(not missing, "no cursor moves without its deliveries", cursor, missing)

    def close(self) -> None:
        for catalog in (self.catalog, self._kept):
            if catalog is not None:
                give_up(catalog)

    def _use(self, catalog: Catalog) -> None:
        give_up(self.catalog)
        self.catalog = catalog

    def _tick(self) -> datetime:
        self.clock += timedelta(milliseconds=7)
        return self.clock

    def _do(self, what: Callable[[], object], fail: str) -> None:
        """What a process does until it ends or is killed."""
        try:
            with self.fate.asked(fail):
                what()
        except Killed:
            self.fate.dead = False

    def _make_sender(self, endpoint: Endpoint) -> Any:
        return _Sender(endpoint.name, self.receivers, self.fate)


class _Sender:
    """Hands a message to the receivers in memory."""

    def __init__(self, endpoint: str, receivers: Receivers, fate: Fate) -> None:
        self._endpoint, self._receivers, self._fate = endpoint, receivers, fate

    async def __aenter__(self) -> "_Sender":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def send(self, message_id: str, body: bytes, _now: datetime) -> Outcome:
        await asyncio.sleep(0)
        self._fate.require_life()
        self._receivers.came.append((self._endpoint, message_id, body))
        status = self._receivers.answers[self._endpoint]
        if status == 0:
            return Outcome(delivered=False, error="No answer.", timed_out=True)
        return Outcome(delivered=status < 300, status_code=status, error="" if status < 300 else "refused")


def _load(folder: Path, retry: str) -> Project:
    pauses = f"    retry: [{retry}]\n"
    return load_trades(
        folder / "project",
        ("    endpoint: ops\n", "    endpoint: [ops, desk]\n"),
        ('    secret: "${OPS_SECRET}"\n', f'    secret: "${{OPS_SECRET}}"\n    in_flight: 3\n{pauses}'),
        ("    retry: [1 s, 5 min]\n", pauses),
        ("    rate: 20\n", ""),
    )


def _recorded(event: Fired, at: datetime, version: int) -> Recorded:
    """LANGUAGE's id and body, spelt once more."""
    text = f"{TRIGGER}:{event.key}:{event.timestamp}" + (f":{event.n}" if event.n > 1 else "")
    event_id = hashlib.sha256(text.encode()).hexdigest()[:32]
    kind = "MATCH" if event.match else "UNMATCH"
    recorded_at = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"
    body = (
        f'{{"event_id":"{event_id}","event_type":"{kind}","trigger_name":"{TRIGGER}",'
        f'"timestamp":"{recorded_at}","source_timestamp":"{event.timestamp}","data":{event.data}}}'
    )
    json.loads(body)
    return Recorded(id=event_id, key=event.key, body=body.encode(), version=version, quiet=event.quiet)


Step = Callable[[OutboxWorld, str], None]


def _record(*events: Fired, dies_before: bool = False) -> Step:
    return lambda world, _: world.record(*events, dies_before=dies_before)


def _answer(**answers: int) -> Step:
    def act(world: OutboxWorld, _: str) -> None:
        world.receivers.answers |= answers
        world.wait()

    return act


STORY: Mapping[str, Step] = {
    "first events": _record(Fired(key="a"), Fired(key="b"), Fired(key="q", quiet=True)),
    "fill": lambda world, fail: world.fill(fail),
    "send": lambda world, fail: world.send(fail),
    "more, twice of one key": _record(
        Fired(key="a", match=False), Fired(key="a", n=2), Fired(key="c"), Fired(key="d"), Fired(key="e")
    ),
    "desk fails": _answer(desk=500, ops=0),
    "fill more": lambda world, fail: world.fill(fail),
    "send more": lambda world, fail: world.send(fail),
    "an attempt that left its file": _record(Fired(key="b", match=False), dies_before=True),
    "keep": lambda world, _: world.keep_catalog(),
    "desk is well": _answer(desk=200, ops=200),
    "fill what came": lambda world, fail: world.fill(fail),
    "send what came": lambda world, fail: world.send(fail),
    "lose": lambda world, _: world.lose_catalog(),
    "fill again": lambda world, fail: world.fill(fail),
    "send again": lambda world, fail: world.send(fail),
    "last": _record(Fired(key="q", match=False, quiet=True), Fired(key="f")),
    "put back": lambda world, _: world.put_back_catalog(),
    "ops is gone": _answer(ops=410),
    "fill the last": lambda world, fail: world.fill(fail),
    "send the last": lambda world, fail: world.send(fail),
}
"""Each step in which a process may be killed takes failpoints."""


def _record_some(world: OutboxWorld, chance: random.Random) -> None:
    events = [
        Fired(
            key=chance.choice("abcde"),
            timestamp=chance.randrange(2),
            match=chance.random() < 0.5,
            quiet=chance.random() < 0.3,
            data=f'{{"n":{chance.randrange(10**6)}.50}}',
        )
        for _ in range(chance.randrange(1, 6))
    ]
    world.record(*events, dies_before=chance.random() < 0.2)


def play_at_random(world: OutboxWorld, seed: int, steps: int) -> None:
    """A schedule of what triggers, processes, receivers and catalogs do."""
    chance = random.Random(seed)
    for _ in range(steps):
        fail = "" if chance.random() < 0.4 else f"{chance.choice(POINTS)}#{{}}=kill"
        match chance.randrange(11):
            case 0 | 1 | 2:
                _record_some(world, chance)
            case 3 | 4:
                world.fill(_soon(fail, chance))
            case 5 | 6:
                world.send(_soon(fail, chance))
            case 7:
                world.receivers.answers[chance.choice(ENDPOINTS)] = chance.choice((0, 200, 410, 429, 500))
            case 8:
                world.wait()
            case 9:
                world.compact()
            case 10:
                chance.choice((world.lose_catalog, world.keep_catalog, world.put_back_catalog))()
        world.check()
    world.rest()


def play_deaths(world: OutboxWorld, seed: int, steps: int) -> Counter[str]:
    """A schedule in which deliveries die, are forgotten and owed again. Returns how each of them ended."""
    chance, ended = random.Random(seed), Counter[str]()
    for _ in range(steps):
        fail = "" if chance.random() < 0.5 else f"{chance.choice(POINTS)}#{{}}=kill"
        match chance.randrange(9):
            case 0 | 1:
                _record_some(world, chance)
                world.fill(_soon(fail, chance))
            case 2 | 3 | 4:
                for _ in range(chance.randrange(1, 5)):
                    world.send(_soon(fail, chance))
                    world.wait(chance.choice((timedelta(minutes=5), timedelta(hours=3))))
            case 5:
                world.receivers.answers[chance.choice(ENDPOINTS)] = chance.choice((0, 200, 410, 429, 500))
            case 6:
                world.forget()
            case 7 if world.told:
                world.replay(chance.choice(world.told), chance.choice(ENDPOINTS))
            case _:
                world.replay_all()
        world.check()
        ended.update({str(k): v for k, v in count_deliveries(world.catalog, DeliveryFilter()).items()})
    world.rest_after_deaths()
    return ended


def _soon(fail: str, chance: random.Random) -> str:
    point = fail.partition("#")[0]
    return fail.format(failpoints.hits[point] + chance.randrange(1, 5)) if fail else ""


def is_clean(world: OutboxWorld) -> bool:
    """Whether nothing came twice."""
    return len({(e, i) for e, i, _ in world.receivers.came}) == len(world.receivers.came)
