"""`python -m bench.subscription_clients PORT N CHANGES CONDITIONS`: subscribers in a process of their own.

It says `ready` once all have their rows, and then prints what they got as JSON.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import websockets

PROTOCOL = websockets.Subprotocol("graphql-transport-ws")
_QUERY = """subscription($least: BigInt) { trades(where: {quantity: {_gte: $least}}) {
  operation data { trade_id quantity } fields ts_timestamp ts_cursor } }"""


@dataclass
class Subscriber:
    """Keeps the rows that it was told, as any dashboard does, and looks for what is missing or twice."""

    port: int
    least: int
    changes: int
    """So many are owed after the rows."""
    rows: dict[str, str] = field(default_factory=dict)
    got: int = 0
    cursor: str = ""
    wrong: int = 0
    first: float = 0.0
    last: float = 0.0

    async def follow(self, ready: asyncio.Semaphore, begun: asyncio.Event) -> None:
        url = f"ws://127.0.0.1:{self.port}/graphql"
        async with websockets.connect(
            url, subprotocols=[PROTOCOL], compression=None, open_timeout=120, ping_timeout=None
        ) as socket:
            await socket.send('{"type":"connection_init"}')
            await socket.recv()
            payload = {"query": _QUERY, "variables": {"least": self.least}}
            await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
            while not self.cursor:
                self._take(json.loads(await socket.recv()))
            ready.release()
            await begun.wait()
            while self.got < self.changes:
                message = json.loads(await socket.recv())
                self.last = time.monotonic()
                self.first = self.first or self.last
                self.got += 1
                self._take(message)

    def _take(self, message: Any) -> None:
        update = message["payload"]["data"]["trades"]
        key, cursor = update["data"]["trade_id"], update["ts_cursor"]
        self.wrong += (key in self.rows) is (update["operation"] == "INSERT")
        if update["operation"] == "DELETE":
            self.rows.pop(key, None)
        else:
            self.rows[key] = update["data"]["quantity"]
        if cursor is not None:
            self.wrong += cursor <= self.cursor
            self.cursor = cursor


async def _follow(port: int, number: int, changes: int, conditions: int) -> None:
    ready, begun = asyncio.Semaphore(0), asyncio.Event()
    subscribers = [Subscriber(port, -(nth % conditions) - 1, changes) for nth in range(number)]
    tasks = []
    for one in subscribers:
        tasks.append(asyncio.create_task(one.follow(ready, begun)))
        if len(tasks) % 20 == 0:
            await asyncio.sleep(0.01)
    all_ready = asyncio.create_task(_acquire(ready, number))
    await asyncio.wait({all_ready, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            task.result()  # it failed
    begun.set()
    print("ready", flush=True)
    await asyncio.gather(*tasks)
    found = {
        "messages": sum(one.got for one in subscribers),
        "seconds": max(one.last for one in subscribers) - min(one.first for one in subscribers),
        "last": max(one.last for one in subscribers),
        "wrong": sum(one.wrong for one in subscribers),
        "rows": [one.rows for one in subscribers],
    }
    print(json.dumps(found), flush=True)


async def _acquire(ready: asyncio.Semaphore, number: int) -> None:
    for _ in range(number):
        await ready.acquire()


if __name__ == "__main__":
    asyncio.run(_follow(*(int(word) for word in sys.argv[1:5])))
