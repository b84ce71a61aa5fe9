"""A server over a small project, called by Starlette's client."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from starlette.responses import Response
from starlette.testclient import TestClient

from strandline.app.workspace import open_workspace
from strandline.model.requests import RequestRecord
from strandline.model.serving import Role
from strandline.serve.answers import answer
from strandline.serve.application import make_application
from strandline.serve.bodies import StrictBody, read_body
from strandline.serve.declared import Call, Route, SocketRoute
from strandline.serve.served import Served, Work

READ, INGEST, OPERATE = (f"{word}-{'k' * 32}" for word in ("read", "ingest", "operate"))
KEYS = f"""
    keys:
      dashboards: {{role: read, key: {READ}}}
      feeds: {{role: ingest, key: {INGEST}, sources: [order_events]}}
      ci: {{role: operate, key: {OPERATE}}}
"""
HOSTS = """
    hosts: [pipe.example]
    origins: ["https://dash.example"]
"""


class NoWork:
    """For routes that hand in no work."""

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        raise AssertionError("no work is handed in here")

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        raise AssertionError("no work is handed in here")

    def wake(self) -> None:
        raise AssertionError("no work is handed in here")


class Echoed(StrictBody):
    text: str = ""


async def echo(call: Call) -> Response:
    body = await read_body(call, Echoed)
    return answer("echo", {"caller": call.caller.name, "text": body.text})


async def fail(_: Call) -> Response:
    raise RuntimeError(f"the key is {OPERATE}")


ROUTES = (
    Route(method="GET", path="/open", role=Role.READ, answer=echo),
    Route(method="POST", path="/echo", role=Role.OPERATE, answer=echo),
    Route(method="POST", path="/facts/{source}", role=Role.INGEST, answer=echo, most_bytes=16 << 20),
    Route(method="GET", path="/fail", role=Role.READ, answer=fail),
)


def write_project(folder: Path, serve: str, more: str = "") -> None:
    (folder / "strandline.yaml").write_text(
        textwrap.dedent(
            """\
            project: shop
            sources:
              order_events: {files: "data/*.jsonl"}
            """
        )
        + (f"settings:\n  serve:\n{serve}" if serve.strip() else "")
        + more
    )


@contextmanager
def serving(
    folder: Path,
    serve: str = "",
    routes: Sequence[Route] = ROUTES,
    sockets: Sequence[SocketRoute] = (),
    *,
    work: Work | None = None,
    client: str = "127.0.0.1",
    environ: Mapping[str, str] | None = None,
) -> Iterator[tuple[TestClient, Served]]:
    """`serve` is what stands under `settings.serve` of the project, unless the folder has a project."""
    if not (folder / "strandline.yaml").exists():
        write_project(folder, serve)
    with open_workspace(folder, {}) as workspace:
        served = Served(workspace=workspace, work=work or NoWork())
        application = make_application(served, routes, sockets, environ or {})
        with TestClient(
            application,
            base_url="http://localhost:8321",
            client=(client, 50_000),
            raise_server_exceptions=False,
        ) as http:
            yield http, served


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}
