"""Subscribers without Spark: how fast their messages leave the server, and what a thousand of them cost.

Server, clients and writer are processes of their own. The writer leaves tables as runs leave them.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websockets

from tests.published_log import PublishedLog, trade

from .progress import say

CLIENTS, OPERATIONS, TIMES = 10, 35, 100
MANY, CONDITIONS, CHANGES = 1_000, 10, 100
"""With the one who never reads, as many as a server takes."""
OPEN = "was not closed"
_LARGE = "x" * 100_000
"""A text that only the subscriber selects who never reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribers:
    messages: int
    """That the few clients got, who are owed all operations."""
    seconds: float
    """From the first to the last of them."""
    inexact: int
    """Subscribers, few or many, that ended with other rows, or had a message missing, twice or too late."""
    many_seconds: float
    """From the first of the changes until the last of the many subscribers had the last one."""
    many_messages: int
    idle_mb: float
    peak_mb: float
    never_read: str
    """What became of the one who never reads."""


def measure_subscribers(folder: Path) -> Subscribers:
    say("subscribers: 10 clients and 3,500 operations")
    messages, seconds, wrong_few = _measure_few(folder / "few")
    say("subscribers: 1,000 of 10 conditions, and one that never reads")
    many = _measure_many(folder / "many")
    return Subscribers(messages=messages, seconds=seconds, **{**many, "inexact": many["inexact"] + wrong_few})


def _measure_few(folder: Path) -> tuple[int, float, int]:
    log = PublishedLog.create(folder)
    log.commit({0: trade(0, quantity=0)})
    with _serving(folder) as (port, _), _subscribing(port, CLIENTS, OPERATIONS * TIMES, 1) as clients:
        version, told = 0, []
        for nth in range(TIMES):  # as a run that catches up: one append to the log tells of many commits
            keys = range(1, OPERATIONS + 1)
            changes = {
                key: None
                if (key + nth) % 5 == 4 and key in log.rows
                else trade(key, quantity=nth * 100 + key)
                for key in keys
            }
            version, rows = log.prepare(changes, timestamp=nth)
            told += rows
        log.append(told, version)
        found = _read_found(clients)
    inexact = sum(rows != _shown(log) for rows in found["rows"]) + found["wrong"]
    return found["messages"], found["seconds"], inexact


def _measure_many(folder: Path) -> dict[str, Any]:
    log = PublishedLog.create(folder)
    log.commit({0: trade(0, quantity=0, symbol="a")})
    with _serving(folder) as (port, server):
        asyncio.run(_begin_and_leave(port))
        idle = _resident(server)
        with _never_reading(port) as lazy, _subscribing(port, MANY - 1, CHANGES, CONDITIONS) as clients:
            say(f"  {MANY:,} subscribed, {_resident(server) - idle:.0f} MB")
            peak, began = _resident(server), time.monotonic()
            for nth in range(CHANGES):
                log.commit({nth % 7: trade(nth % 7, quantity=nth, symbol=f"{nth}{_LARGE}")}, timestamp=nth)
                peak = max(peak, _resident(server))
            found = _read_found(clients)
            peak = max(peak, _resident(server))
            never_read = _find_end(lazy)
    inexact = sum(rows != _shown(log) for rows in found["rows"]) + found["wrong"]
    return {
        "inexact": inexact,
        "many_seconds": found["last"] - began,
        "many_messages": found["messages"],
        "idle_mb": idle,
        "peak_mb": peak,
        "never_read": never_read,
    }


def _shown(log: PublishedLog) -> dict[str, str]:
    return {str(key): str(row["quantity"]) for key, row in log.rows.items()}


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, int]]:
    """The port and the id of the process."""
    with _process("bench.subscription_server", str(folder)) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline()), server.pid


@contextmanager
def _subscribing(port: int, *numbers: int) -> Iterator[subprocess.Popen[str]]:
    with _process("bench.subscription_clients", str(port), *map(str, numbers)) as clients:
        assert clients.stdout is not None
        assert clients.stdout.readline() == "ready\n", "not all could subscribe"
        yield clients


@contextmanager
def _process(module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", module, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def _read_found(clients: subprocess.Popen[str]) -> Any:
    assert clients.stdout is not None
    return json.loads(clients.stdout.readline())


async def _begin_and_leave(port: int) -> None:
    """An idle server has loaded what it needs."""
    client = await _connect(port)
    await _subscribe(client, "subscription { trades { operation } }")
    await client.close()
    await asyncio.sleep(1)


async def _connect(port: int, **more: Any) -> websockets.ClientConnection:
    url, protocol = f"ws://127.0.0.1:{port}/graphql", websockets.Subprotocol("graphql-transport-ws")
    client = await websockets.connect(url, subprotocols=[protocol], compression=None, **more)
    await client.send('{"type":"connection_init"}')
    await client.recv()
    return client


async def _subscribe(client: websockets.ClientConnection, query: str) -> None:
    await client.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}}))
    await client.recv()


@contextmanager
def _never_reading(port: int) -> Iterator[socket.socket]:
    """A subscriber whose socket is never read from once it has begun, with a small buffer."""
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        raw.connect(("127.0.0.1", port))
        raw.sendall(
            f"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n".encode()
        )
        answered = b""
        while b"\r\n\r\n" not in answered:
            answered += raw.recv(1)
        query = "subscription { trades { data { symbol } } }"
        for message in (
            {"type": "connection_init"},
            {"id": "1", "type": "subscribe", "payload": {"query": query}},
        ):
            raw.sendall(_frame(json.dumps(message).encode()))
        time.sleep(1)
        yield raw


def _frame(text: bytes) -> bytes:
    """A masked frame of a client; its mask is zero."""
    size = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + len(text).to_bytes(2)
    return b"\x81" + size + bytes(4) + text


def _find_end(raw: socket.socket) -> str:
    """Read all that the server sent. It ends with the code of the close."""
    raw.settimeout(30)
    last = b""
    try:
        while data := raw.recv(1 << 20):
            last = (last + data)[-200:]
    except TimeoutError:
        return OPEN
    except ConnectionResetError:
        return "was cut off"
    place = last.rfind(b"\x88")
    return f"closed with {int.from_bytes(last[place + 2 : place + 4])}" if place >= 0 else "was cut off"


def _resident(process: int) -> float:
    """Megabytes that a process has in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
