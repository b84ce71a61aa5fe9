"""`python -m bench.subscription_server FOLDER`: serves GraphQL in its own process, and prints its port."""

import asyncio
import sys
from pathlib import Path

import uvicorn

from strandline.app.workspace import open_workspace
from strandline.model.dispatching import DispatcherState
from strandline.model.requests import RequestRecord
from strandline.serve import graphql_routes
from strandline.serve.application import make_application
from strandline.serve.served import Served


class _NoWork:
    """Nothing is run here: what subscribers are told was published by another process."""

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        raise NotImplementedError

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        raise NotImplementedError

    def wake(self) -> None: ...

    def state(self) -> DispatcherState:
        return DispatcherState(dispatching=False)


async def _serve(folder: Path) -> None:
    with open_workspace(folder, {}) as workspace:
        served = Served(workspace=workspace, work=_NoWork())
        application = make_application(served, graphql_routes.ROUTES, graphql_routes.SOCKETS, {})
        server = uvicorn.Server(
            uvicorn.Config(
                application, port=0, log_level="warning", lifespan="off", ws_per_message_deflate=False
            )
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
