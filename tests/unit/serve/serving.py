"""A server of GraphQL alone, on a port of this machine, in a thread of its own."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection

from strandline.app.reading import Readable
from strandline.model.errors import CallError
from strandline.serve.graphql.engine import Engine
from strandline.serve.graphql.socket import PROTOCOL, serve_socket
from strandline.serve.subscriptions.hub import Hub

KEY = "k" * 40


class Server:
    """`hub` and `engine` belong to the loop of the server's thread."""

    hub: Hub
    engine: Engine
    port: int

    def __init__(self, workspace: Readable, *, needs_key: bool = False, patience: float = 10.0) -> None:
        self.workspace = workspace
        self._needs_key = needs_key
        self._patience = patience
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/graphql"

    def call(self, function: Callable[[], object]) -> None:
        """Call something in the server's loop."""
        self._loop.call_soon_threadsafe(function)

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(10)

    def stop(self) -> None:
        self._server.should_exit = True
        self.call(self.hub.close)
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.hub = Hub(lambda: self.workspace)
        self.engine = Engine(self.hub)
        application = Starlette(routes=[WebSocketRoute("/graphql", self._answer)])
        config = uvicorn.Config(
            application, port=0, log_level="warning", ws_per_message_deflate=False, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        following = asyncio.create_task(self.hub.follow())
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self._started.set()
        await serving
        following.cancel()

    async def _answer(self, socket: WebSocket) -> None:
        known = not self._needs_key
        await serve_socket(socket, self.engine, _identify, known=known, patience=self._patience)


def _identify(key: str) -> object:
    if key != KEY:
        raise CallError("unknown", slug="unknown-access-key")
    return "somebody"


@contextmanager
def serving(workspace: Readable, **more: Any) -> Iterator[Server]:
    server = Server(workspace, **more)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Client:
    """One connection by the protocol, message by message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    @classmethod
    async def open(cls, server: Server, *, init: bool = True, payload: object = None) -> "Client":
        socket = await websockets.connect(server.url, subprotocols=[PROTOCOL], max_size=None)  # type: ignore[list-item]
        client = cls(socket)
        if init:
            await client.send(type="connection_init", **({} if payload is None else {"payload": payload}))
            assert await client.receive() == {"type": "connection_ack"}
        return client

    async def send(self, **message: object) -> None:
        await self.socket.send(json.dumps(message))

    async def subscribe(self, query: str, name: str = "1", **variables: object) -> None:
        payload = {"query": query, "variables": variables}
        await self.send(id=name, type="subscribe", payload=payload)

    async def receive(self, seconds: float = 10.0) -> Any:
        async with asyncio.timeout(seconds):
            return json.loads(await self.socket.recv())

    async def updates(self, number: int) -> list[Any]:
        """The next updates of the only field of subscriptions."""
        answers = [await self.receive() for _ in range(number)]
        assert all(answer["type"] == "next" for answer in answers), answers
        return [next(iter(answer["payload"]["data"].values())) for answer in answers]

    async def close_code(self, seconds: float = 10.0) -> int | None:
        """The code with which the server closes. Messages before that are passed over."""
        async with asyncio.timeout(seconds):
            try:
                while True:
                    await self.socket.recv()
            except websockets.ConnectionClosed:
                return self.socket.close_code
