"""A subscriber that stays: it keeps the rows, and resumes after its last cursor when it is cut off.

It looks for what must never come: a change that does not fit the rows, and a cursor that does not grow.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import websockets

PROTOCOL = websockets.Subprotocol("graphql-transport-ws")
_PAUSE = 0.2


class _RefusedError(Exception):
    """The server answered with errors."""


@dataclass
class Follower:
    """Follows in a thread of its own from `start` to `stop`. `find_port` gives 0 while nobody serves."""

    dataset: str
    columns: tuple[str, ...]
    key: str
    find_port: Callable[[], int]
    where: str = ""
    """As GraphQL writes it, such as `where: {price: {_gte: "10"}}`."""
    access_key: str = ""
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    cursor: str = ""
    messages: int = 0
    resumed: int = 0
    begun_anew: int = 0
    """How often it had to begin with the rows again, because its cursor had expired."""
    codes: Counter[int] = field(default_factory=Counter)
    """The codes with which connections were closed."""
    broken: list[str] = field(default_factory=list)

    def start(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._follow()), name=f"{self.dataset}")
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)

    async def _follow(self) -> None:
        while not self._stop.is_set():
            following = asyncio.create_task(self._follow_once())
            while not following.done() and not self._stop.is_set():
                await asyncio.sleep(0.1)
            following.cancel()
            try:
                await following
            except asyncio.CancelledError:
                pass
            except _RefusedError as error:
                if "CURSOR_EXPIRED" in str(error):
                    self.begun_anew += 1
                    self.cursor = ""
                elif self.messages:  # before that the table may not have been built
                    self._break(f"refused: {error}")
                await asyncio.sleep(_PAUSE)
            except websockets.ConnectionClosed as closed:
                self.codes[closed.rcvd.code if closed.rcvd else 1006] += 1
            except (OSError, websockets.InvalidHandshake, TimeoutError, EOFError):
                await asyncio.sleep(_PAUSE)

    async def _follow_once(self) -> None:
        port = self.find_port()
        if not port:
            await asyncio.sleep(_PAUSE)
            return
        async with websockets.connect(
            f"ws://127.0.0.1:{port}/graphql", subprotocols=[PROTOCOL], compression=None, open_timeout=10
        ) as socket:
            payload = {"access_key": self.access_key} if self.access_key else {}
            await socket.send(json.dumps({"type": "connection_init", "payload": payload}))
            await socket.recv()
            if self.cursor:
                self.resumed += 1
            else:
                self.rows.clear()
            await socket.send(
                json.dumps({"id": "1", "type": "subscribe", "payload": {"query": self._query()}})
            )
            while True:
                message = json.loads(await socket.recv())
                match message["type"]:
                    case "next":
                        self._take(message["payload"]["data"][self.dataset])
                    case "error":
                        raise _RefusedError(json.dumps(message["payload"]))
                    case "ping":
                        await socket.send('{"type":"pong"}')

    def _query(self) -> str:
        after = f'after: "{self.cursor}"' if self.cursor else ""
        inside = ", ".join(part for part in (self.where, after) if part)
        arguments = f"({inside})" if inside else ""
        return (
            f"subscription {{ {self.dataset}{arguments}"
            f" {{ operation ts_cursor data {{ {' '.join(self.columns)} }} }} }}"
        )

    def _take(self, update: dict[str, Any]) -> None:
        self.messages += 1
        key, operation, cursor = update["data"][self.key], update["operation"], update["ts_cursor"]
        if (key in self.rows) is (operation == "INSERT"):
            self._break(f"{operation} of {key} at {cursor}, and it is {self.rows.get(key)}")
        if operation == "DELETE":
            self.rows.pop(key, None)
        else:
            self.rows[key] = update["data"]
        if cursor is not None:
            if cursor <= self.cursor:
                self._break(f"the cursor {cursor} comes after {self.cursor}")
            self.cursor = cursor
        elif self.cursor:
            self._break("a row without a cursor comes after a cursor")

    def _break(self, what: str) -> None:
        if len(self.broken) < 20:
            self.broken.append(f"a subscriber of {self.dataset}: {what}")
