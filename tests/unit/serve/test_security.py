"""A walk over every route, and what nobody may see, over a real socket too."""

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
import uvicorn

from strandline.app.workspace import open_workspace
from strandline.model.serving import Role, hash_key
from strandline.pages.status import render_html
from strandline.serve import graphql_routes, row_routes
from strandline.serve.application import make_application
from strandline.serve.declared import Route
from strandline.serve.facts import make_facts_route
from strandline.serve.logs import configure_logs
from strandline.serve.routes import make_routes
from strandline.serve.served import Served
from tests.unit.declare.publishing import edited
from tests.unit.serve.builders import HOSTS, INGEST, KEYS, OPERATE, READ, NoWork, bearer, serving

ROUTES = tuple(
    {
        (route.method, route.path): route
        for route in (*make_routes(), make_facts_route(), *row_routes.ROUTES, *graphql_routes.ROUTES)
    }.values()
)
GUARDED = tuple(route for route in ROUTES if route.role is not None)
LANGUAGE = {
    ("POST", "/v1/facts/{source}"): Role.INGEST,
    ("POST", "/v1/runs"): Role.OPERATE,
    ("POST", "/v1/backfill"): Role.OPERATE,
    ("POST", "/v1/invalidations"): Role.OPERATE,
    ("POST", "/v1/verify"): Role.OPERATE,
    ("GET", "/v1/requests/{request}"): Role.READ,
    ("GET", "/v1/runs"): Role.READ,
    ("GET", "/v1/runs/{run}"): Role.READ,
    ("GET", "/v1/plan"): Role.READ,
    ("GET", "/v1/status"): Role.READ,
    ("GET", "/v1/invalidations"): Role.READ,
    ("GET", "/v1/datasets"): Role.READ,
    ("GET", "/v1/datasets/{name}"): Role.READ,
    ("GET", "/v1/datasets/{name}/rows"): Role.READ,
    ("GET", "/v1/datasets/{name}/history"): Role.READ,
    ("GET", "/v1/datasets/{name}/changes"): Role.READ,
    ("GET", "/v1/triggers"): Role.READ,
    ("GET", "/v1/triggers/{name}"): Role.READ,
    ("GET", "/v1/endpoints"): Role.READ,
    ("GET", "/v1/deliveries"): Role.READ,
    ("GET", "/v1/deliveries/{id}"): Role.READ,
    ("POST", "/v1/deliveries/{id}/replay"): Role.OPERATE,
    ("POST", "/v1/deliveries/replay"): Role.OPERATE,
    ("POST", "/v1/endpoints/{name}/enable"): Role.OPERATE,
    ("POST", "/v1/endpoints/{name}/disable"): Role.OPERATE,
    ("POST", "/v1/endpoints/{name}/test"): Role.OPERATE,
    ("GET", "/metrics"): Role.READ,
    ("POST", "/graphql"): Role.READ,
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
}
"""What is promised, and who may."""
KEY_BY_ROLE = {Role.READ: READ, Role.INGEST: INGEST, Role.OPERATE: OPERATE}


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(route: Route) -> str:
    return route.path.replace("{", "").replace("}", "")


def test_the_routes_and_their_roles_are_those_that_are_promised() -> None:
    own = {(r.method, r.path): r.role for r in ROUTES if r.path != "/v1/handover"}

    assert own == LANGUAGE


@pytest.mark.parametrize("route", GUARDED, ids=name_of)
def test_a_route_refuses_whoever_has_no_key_a_wrong_one_or_too_little_of_a_role(
    route: Route, tmp_path: Path
) -> None:
    assert route.role is not None
    with serving(tmp_path, KEYS + HOSTS, routes=ROUTES) as (http, _):

        def call(headers: dict[str, str]) -> int:
            return int(http.request(route.method, path_of(route), headers=headers).status_code)

        assert call({}) == 401
        assert call(bearer("x" * 40)) == 401
        assert call({"authorization": f"Basic {OPERATE}"}) == 401
        for role, key in KEY_BY_ROLE.items():
            if not role.includes(route.role):
                assert call(bearer(key)) == 403
        assert call(bearer(OPERATE) | {"host": "evil.example"}) == 403
        assert call(bearer(OPERATE) | {"origin": "https://evil.example"}) == 403


@pytest.mark.parametrize("route", [r for r in GUARDED if r.method == "POST"], ids=name_of)
def test_a_route_that_changes_something_takes_no_form_of_a_web_page(route: Route, tmp_path: Path) -> None:
    with serving(tmp_path, routes=ROUTES) as (http, _):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answered = http.post(path_of(route), content=b"{}", headers={"content-type": kind})
            assert answered.status_code == 415


@pytest.mark.parametrize("route", GUARDED, ids=name_of)
def test_a_route_without_keys_answers_this_machine_alone(route: Route, tmp_path: Path) -> None:
    with serving(tmp_path, routes=ROUTES, client="192.0.2.7") as (http, _):
        assert http.request(route.method, path_of(route)).status_code == 401


class Listening:
    """A server on a port of this machine, in a thread."""

    def __init__(self, served: Served) -> None:
        application = make_application(served, ROUTES, graphql_routes.SOCKETS, {})
        config = uvicorn.Config(application, port=0, lifespan="off", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()))
        self._served = served

    def __enter__(self) -> "Listening":
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._served.live.close()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def say(self, *pieces: bytes, seconds: float = 10.0) -> bytes:
        """What the server answers to these bytes. Whoever is refused may find the connection closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    connection.sendall(piece)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while b"\r\n\r\n" not in answer and (piece := connection.recv(65536)):
                    answer += piece
            return answer


@contextmanager
def listening(folder: Path, text: str) -> Iterator[Listening]:
    (folder / "strandline.yaml").write_text(text)
    with open_workspace(folder, {}) as workspace:
        served = Served(workspace=workspace, work=NoWork())
        with Listening(served) as server:
            yield server


HEAD = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_is_too_large_is_refused_before_any_of_it_was_sent(tmp_path: Path) -> None:
    head = HEAD.format(path="/v1/facts/events") + f"Content-Length: {17 << 20}\r\n\r\n"

    with listening(tmp_path, edited()) as server:
        answer = server.say(head.encode())

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    head = HEAD.format(path="/v1/runs") + "Transfer-Encoding: chunked\r\n\r\n"
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"

    with listening(tmp_path, edited()) as server:
        answer = server.say(head.encode(), *([piece] * 64))

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "head",
    [
        "GET /v1/status HTTP/1.0\r\n\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET http://evil.example/v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n",
    ],
)
def test_a_call_that_hides_its_host_or_origin_is_refused(tmp_path: Path, head: str) -> None:
    with listening(tmp_path, edited()) as server:
        answer = server.say(head.encode())

    assert answer.split(b" ")[1] in (b"400", b"403")


def test_no_file_log_page_metric_or_error_has_a_key_or_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
    token = "token-of-the-desk-that-nobody-may-see"
    environ = {"READ_KEY": READ, "CI_KEY": OPERATE, "OPS_SECRET": secret, "DESK_TOKEN": token}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    text = edited() + (
        "settings:\n  serve:\n    keys:\n"
        "      dashboards: {role: read, key: '${READ_KEY}'}\n      ci: {role: operate, key: '${CI_KEY}'}\n"
    )
    (tmp_path / "strandline.yaml").write_text(text)
    configure_logs(sys.stderr)
    shown = []
    try:
        with serving(tmp_path, routes=ROUTES, environ=environ) as (http, served):
            for route in ROUTES:
                for key in (READ, OPERATE, f"{OPERATE}x"):
                    shown.append(http.request(route.method, path_of(route), headers=bearer(key)).text)
            for body in (f'{{"{OPERATE}": 1}}', f'{{"select": ["{OPERATE}"'):
                headers = bearer(OPERATE) | {"content-type": "application/json"}
                http.post("/v1/runs", content=body, headers=headers)
            shown.append(http.get("/metrics", headers=bearer(READ)).text)
            from strandline.app.status import read_overview

            shown.append(render_html(read_overview(served.workspace)))
            shown.append(repr(served))
    finally:
        structlog.reset_defaults()
    captured = capsys.readouterr()
    shown += [captured.out, captured.err]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]

    assert len(files) > 1
    assert len(captured.err) > 1000
    for hidden in (READ, OPERATE, secret, token, hash_key(READ), hash_key(OPERATE)):
        assert not [text for text in shown if hidden in text]
        assert not [content for content in files if hidden.encode() in content]
