"""The receiver of the soak, which fails often, and what must have come to it in the end."""

import asyncio
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from aiohttp import web

from strandline.app.deliveries import DeliveriesRequest, show_deliveries
from strandline.app.workspace import open_workspace
from strandline.catalog import enable_endpoint
from strandline.model.deliveries import DeliveryStatus
from strandline.model.events import make_event_id
from tests.contract.test_outbox import pass_time
from tests.faults.evidence import require
from tests.receiver import SECRET, receiving_in_thread

from .reader import PUBLISHED_ONCE, find_twice

if TYPE_CHECKING:
    from .rest import Rest

TRIGGER, ENDPOINT = "dear", "ops"
DEAR, CHEAP = 500, 400
SECRET_NAME = "SOAK_SECRET"
_FAILS = 0.3
_EVENTS = ("event_id", "event_type", "key", "source_timestamp", "n", "data", "version", "position", "quiet")
_SENDINGS = 50


def publishing(port: int) -> str:
    """The sections that publish. Nothing dies: there are attempts enough."""
    pauses = ", ".join(["1 s"] * 20 + ["1 min"] * 200)
    return f"""\
views:
  dear_items: {{from: item, where: {{price: {{_gte: {DEAR}}}}}, calculated: {{twice: "price * 2"}}}}
endpoints:
  {ENDPOINT}:
    url: "http://127.0.0.1:{port}/hook"
    secret: "${{{SECRET_NAME}}}"
    allow: ["127.0.0.0/8"]
    timeout: 2 s
    retry: [{pauses}]
triggers:
  {TRIGGER}:
    from: item
    fire: {{price: {{_gte: {DEAR}}}}}
    clear: {{price: {{_lt: {CHEAP}}}}}
    endpoint: {ENDPOINT}
    guard: {{max_events: 1000000}}
"""


class Told:
    """Everything that came, in its order."""

    def __init__(self, seed: str) -> None:
        self.came: list[tuple[str, bytes]] = []
        self.refused = 0
        self.fails = True
        self._chance = random.Random(f"{seed}/receiver")
        self._lock = Lock()

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Sometimes it takes a message and says that it did not, or says nothing in time."""
        with self._lock:
            what = self._chance.random() if self.fails else 1.0
            if what > _FAILS / 2:
                self.came.append((request.headers["webhook-id"], body))
            self.refused += what < _FAILS
        if what < _FAILS / 20:
            await asyncio.sleep(3)
        return web.Response(status=500 if what < _FAILS else 204)


@contextmanager
def listening(seed: str) -> Iterator[tuple[Told, int]]:
    """A receiver and its port. Its secret is in the environment of this process and of those it starts."""
    told = Told(seed)
    os.environ[SECRET_NAME] = SECRET
    with receiving_in_thread(told.answer) as receiver:
        yield told, receiver.port


def send_rest(folder: Path, told: Told) -> None:
    """The receiver takes everything from now on. What waits for its next attempt is due at once."""
    told.fails = False
    with open_workspace(folder) as workspace:
        for _ in range(_SENDINGS):
            enable_endpoint(workspace.catalog, ENDPOINT)
            pass_time(workspace.catalog, timedelta(minutes=3))
            outcome = show_deliveries(workspace, DeliveriesRequest(send=True, limit=1))
            if set(outcome.counts) <= {DeliveryStatus.DELIVERED}:
                return
        raise AssertionError(f"deliveries do not drain: {dict(outcome.counts)}")


def check_told(rest: "Rest", told: Told) -> None:
    """None lost, no id with two bodies, none that was not recorded; those of a key in order."""
    events = [dict(zip(_EVENTS, row, strict=True)) for row in rest.rows(TRIGGER, *_EVENTS)]
    require(bool(events), "something fired")
    by_id = {event["event_id"]: event for event in events}
    require(len(by_id) == len(events), "L12 different events have different ids")
    for event in events:
        place = (event["key"], event["source_timestamp"], event["n"])
        require(event["event_id"] == make_event_id(TRIGGER, *place), "L12 ids", event)
    bodies: dict[str, set[bytes]] = defaultdict(set)
    first: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event_id, body in told.came:
        require(event_id in by_id, "only what was recorded is sent", event_id)
        event = by_id[event_id]
        if event_id not in bodies:
            first[event["key"]].append((event["version"], event["position"]))
        bodies[event_id].add(body)
        require(json.loads(body)["data"] == json.loads(event["data"]), "the row as it was recorded", body)
    twice = [event_id for event_id, found in bodies.items() if len(found) > 1]
    require(not twice, "no id has two bodies", twice)
    owed = {event["event_id"] for event in events if not event["quiet"]}
    require(bodies.keys() == owed, "none is lost, and no quiet one is told", bodies.keys() ^ owed)
    unordered = [key for key, places in first.items() if places != sorted(places)]
    require(not unordered, "those of a key come in order", unordered)
    _check_states(rest, events)
    for dataset in PUBLISHED_ONCE:
        rows = find_twice(rest.project.folder, dataset)
        require(not rows, "L5 nothing twice", rows[:5])


def _check_states(rest: "Rest", events: list[dict[str, Any]]) -> None:
    """The last event of a key is what the items say, where `fire` or `clear` decides it."""
    from .rest import latest_by

    last = {
        event["key"]: event["event_type"]
        for event in sorted(events, key=lambda event: (event["version"], event["position"]))
    }
    items = latest_by(rest.item, "id")
    prices = {key: items[key]["price"] for key in items}
    wrong = {
        key: (last.get(key), prices.get(key))
        for key in {*last, *prices}
        if (prices.get(key, 0) >= DEAR and last.get(key) != "MATCH")
        or (prices.get(key, 0) < CHEAP and last.get(key) == "MATCH")
    }
    require(not wrong, "events tell the state of every key", list(wrong.items())[:5])
