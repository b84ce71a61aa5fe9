"""A receiver of webhooks on this machine, for tests: it records what comes and answers as it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from queue import Queue
from threading import Thread
from typing import Any

from aiohttp import web

from strandline.model.endpoints import Endpoint
from strandline.model.errors import Place

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
Answer = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]
LOCAL = (ip_network("127.0.0.0/8"),)


@dataclass(slots=True)
class Receiver:
    """Every request that came, and how many were under way at once."""

    port: int = 0
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.received]


async def accept(_request: web.Request, _body: bytes) -> web.StreamResponse:
    return web.Response(status=204)


@asynccontextmanager
async def receiving(answer: Answer = accept) -> AsyncIterator[Receiver]:
    receiver = Receiver()

    async def receive(request: web.Request) -> web.StreamResponse:
        receiver.under_way += 1
        receiver.most_under_way = max(receiver.most_under_way, receiver.under_way)
        try:
            body = await request.read()
            receiver.paths.append(request.path)
            receiver.received.append(({k.lower(): v for k, v in request.headers.items()}, body))
            return await answer(request, body)
        finally:
            receiver.under_way -= 1

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()


@contextmanager
def receiving_in_thread(answer: Answer = accept) -> Iterator[Receiver]:
    """A receiver in a loop of its own, for callers that have another or none."""
    found, loop = Queue[tuple[Receiver, asyncio.Event]](), asyncio.new_event_loop()

    async def serve() -> None:
        async with receiving(answer) as receiver:
            stop = asyncio.Event()
            found.put((receiver, stop))
            await stop.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()), name="receiver")
    thread.start()
    receiver, stop = found.get()
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A server that need not speak HTTP. Gives its port."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def endpoint_of(url: str, name: str = "ops", **fields: Any) -> Endpoint:
    given: dict[str, Any] = {"allow": LOCAL, "secrets": (SECRET,), **fields}
    return Endpoint(name=name, place=Place(file="strandline.yaml", line=1), url=url, **given)
