"""A server over a small project, called by Starlette's client."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from starlette.responses import Response
from starlette.testclient import TestClient

from strandline.app.work import from_wire, to_wire
from strandline.app.workspace import Workspace, open_workspace
from strandline.catalog import add_request, claim_request, find_request, finish_request
from strandline.model.errors import StrandlineError
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


class AtOnce:
    """Records requests in the catalog as a server does, and ends each at once with the outcome of its verb.

    A verb without an outcome stays pending.
    """

    def __init__(self, workspace: Workspace, outcomes: Mapping[str, object]) -> None:
        self._catalog = workspace.catalog
        self._outcomes = outcomes
        self.requests: list[object] = []
        """The values that were handed in."""

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        name = f"request-{len(self.requests)}"
        record = add_request(self._catalog, name, verb, to_wire(request), actor)
        self.requests.append(from_wire(record.arguments))
        if verb not in self._outcomes:
            return record
        claim = claim_request(self._catalog, "here", 60)
        assert claim is not None
        match self._outcomes[verb]:
            case StrandlineError() as error:
                told = {"slug": error.slug, "message": error.what, "remedy": error.remedy, "exit_code": 1}
                finish_request(self._catalog, claim, error=told)
            case outcome:
                finish_request(self._catalog, claim, result=to_wire(outcome))
        return record

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        record = find_request(self._catalog, request)
        assert record is not None
        return record

    def wake(self) -> None:
        """Everything was done at once."""


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
    work: Callable[[Workspace], Work] = lambda _: NoWork(),
    client: str = "127.0.0.1",
    environ: Mapping[str, str] | None = None,
) -> Iterator[tuple[TestClient, Served]]:
    """`serve` is what stands under `settings.serve` of the project, unless the folder has a project."""
    if not (folder / "strandline.yaml").exists():
        write_project(folder, serve)
    with open_workspace(folder, {}) as workspace:
        served = Served(workspace=workspace, work=work(workspace))
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
