"""A whole server without a dispatcher, on a port of this machine, in a thread of its own."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
import websockets
from websockets.asyncio.client import ClientConnection

from strandline.app.workspace import open_workspace
from strandline.serve import graphql_routes, row_routes
from strandline.serve.application import make_application
from strandline.serve.facts import make_facts_route
from strandline.serve.graphql.socket import PROTOCOL
from strandline.serve.served import Served
from tests.unit.serve.builders import NoWork

KEY, OTHER = "k" * 40, "o" * 40
KEYS = f"""
settings:
  serve:
    keys:
      dashboards: {{role: read, key: {KEY}}}
      feeds: {{role: ingest, key: {OTHER}}}
"""


class _Woken(NoWork):
    """Facts may be posted. Whoever tests runs the project."""

    def wake(self) -> None: ...


class Server:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, name: str, dataset: str) -> float:
        """The value of a metric."""
        metrics = {metric.name: metric for metric in self.served.measures.read()}
        return sum(s.value for s in metrics[name].samples if s.labels == {"dataset": dataset})

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(20)

    def stop(self) -> None:
        self.served.live.close()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with open_workspace(self._folder, {}) as workspace:
            self.served = Served(workspace=workspace, work=_Woken())
            routes = (make_facts_route(), *graphql_routes.ROUTES, *row_routes.ROUTES)
            application = make_application(self.served, routes, graphql_routes.SOCKETS, {})
            config = uvicorn.Config(
                application, port=0, log_level="warning", ws_per_message_deflate=False, lifespan="off"
            )
            self._server = uvicorn.Server(config)
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self._started.set()
        await serving


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder)
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
    async def open(
        cls,
        server: Server,
        *,
        init: bool = True,
        payload: object = None,
        headers: dict[str, str] | None = None,
    ) -> "Client":
        url = f"ws://127.0.0.1:{server.port}/graphql"
        protocols = [websockets.Subprotocol(PROTOCOL)]
        socket = await websockets.connect(
            url, subprotocols=protocols, max_size=None, compression=None, additional_headers=headers
        )
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
