"""The application: every call is judged here, in one order, before the function of its route is called.

Host and origin, then key, route, role, rate, content type and size. A route that is not declared, and one
without a role, cannot be called.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import structlog
from opentelemetry import trace
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Matcher
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from strandline.app.clock import now
from strandline.model.errors import StrandlineError
from strandline.model.node import Project
from strandline.model.serving import Role

from .access import (
    Access,
    check_host,
    check_origin,
    check_role,
    identify,
    open_access,
    read_bearer,
)
from .answers import answer_error, find_status
from .bodies import check_content_type, count_body
from .declared import Call, Caller, Route, SocketCall, SocketRoute
from .limits import CALLS_A_SECOND, CALLS_AT_ONCE, REFUSALS_A_SECOND, REFUSALS_AT_ONCE, Rate
from .refused import RefusedError
from .served import Served

WITHOUT_ROLE = frozenset({"/healthz", "/readyz"})
"""The only routes that anyone may call."""
_UNKNOWN = "unknown"
"""The route of a call, in metrics and logs, that is not declared."""
_ANYONE = Caller(name="anyone", role=Role.READ)
_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
    "access-control-max-age": "600",
}

log = structlog.get_logger("strandline.serve")
tracer = trace.get_tracer("strandline.serve")


def make_application(
    served: Served,
    routes: Sequence[Route],
    sockets: Sequence[SocketRoute] = (),
    environ: Mapping[str, str] | None = None,
) -> Starlette:
    """The application of these routes. Raises CallError if an access key cannot be read."""
    _refuse_undeclared(routes, sockets)
    front = Front(served=served, routes=routes, sockets=sockets, environ=environ or os.environ)
    application = Starlette()
    application.router.redirect_slashes = False
    application.router.default = front  # a route of Starlette's would leave out paths such as `*`
    return application


def _refuse_undeclared(routes: Sequence[Route], sockets: Sequence[SocketRoute]) -> None:
    """A server whose routes are not all declared with their role does not start."""
    for route in routes:
        if route.role is None and route.path not in WITHOUT_ROLE:
            raise ValueError(f"the route {route.method} {route.path} names no role")
    for socket in sockets:
        if not isinstance(socket.role, Role):
            raise ValueError(f"the socket {socket.path} names no role")
    named = [(route.method, route.path) for route in routes]
    twice = {name for name in named if named.count(name) > 1}
    if twice:
        raise ValueError(f"declared twice: {sorted(twice)}")


@dataclass(slots=True)
class Answered:
    """What is known about a call when it has been answered."""

    route: str = _UNKNOWN
    caller: str = ""
    code: int = 500


@dataclass(slots=True, kw_only=True)
class AccessKeeper:
    """The access of the project that is in force. The one before stays while a key cannot be read."""

    served: Served
    environ: Mapping[str, str]
    _project: Project | None = None
    _access: Access | None = None

    def read(self) -> Access:
        project = self.served.workspace.project
        if self._access is None or self._project is not project:
            try:
                self._access = open_access(project.settings.serve, self.environ, self.served.machine_key)
            except StrandlineError as error:
                if self._access is None:
                    raise
                self.served.project_error = str(error)
            self._project = project
        return self._access


class Front:
    """What a call meets first. One per server."""

    def __init__(
        self,
        *,
        served: Served,
        routes: Sequence[Route],
        sockets: Sequence[SocketRoute],
        environ: Mapping[str, str],
    ) -> None:
        self._served = served
        self._routes = [(Matcher(r.path, _never, methods=[r.method]), r) for r in routes]
        self._sockets = {socket.path: socket for socket in sockets}
        self._keeper = AccessKeeper(served=served, environ=environ)
        self._keeper.read()
        self._calls = Rate(a_second=CALLS_A_SECOND, at_once=CALLS_AT_ONCE)
        self._refusals = Rate(a_second=REFUSALS_A_SECOND, at_once=REFUSALS_AT_ONCE)
        self._number = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._open(WebSocket(scope, receive, send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        self._number += 1
        answered, name = Answered(), f"{os.getpid()}-{self._number}"
        with tracer.start_as_current_span(f"HTTP {scope['method']}") as span:
            try:
                response = await self._judge(scope, receive, send, answered)
                answered.code = response.status_code
                response.headers["x-request-id"] = name
                await response(scope, receive, send)
            except ClientDisconnect:
                answered.code = 499
            finally:
                seconds = time.monotonic() - began
                span.set_attribute("http.route", answered.route)
                span.set_attribute("http.response.status_code", answered.code)
                self._served.measures.add("http_requests_total", answered.route, str(answered.code))
                log.info(
                    "request",
                    request_id=name,
                    method=scope["method"],
                    route=answered.route,
                    code=answered.code,
                    caller=answered.caller,
                    seconds=round(seconds, 4),
                )

    async def _judge(self, scope: Scope, receive: Receive, send: Send, answered: Answered) -> Response:
        """The answer to a call, or to its refusal."""
        headers = Headers(scope=scope)
        other_origin = ""
        try:
            access = self._keeper.read()
            check_host(access, headers)
            other_origin = check_origin(access, headers)
            if other_origin and scope["method"] == "OPTIONS":
                answered.route = "preflight"
                response = Response(status_code=204, headers=_PREFLIGHT)
            else:
                response = await self._call(access, scope, receive, send, headers, answered)
        except StrandlineError as error:
            response = answer_error(error)
            if find_status(error) >= 500:
                log.warning("call failed", route=answered.route, slug=error.slug)
        except ClientDisconnect:
            raise
        except Exception as error:
            log.error("call raised", route=answered.route, error=type(error).__name__, exc_info=True)
            response = answer_error(_unexpected())
        if other_origin:
            response.headers["access-control-allow-origin"] = other_origin
            response.headers["access-control-expose-headers"] = "retry-after, x-request-id"
        response.headers["vary"] = "origin"
        return response

    async def _call(
        self,
        access: Access,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Headers,
        answered: Answered,
    ) -> Response:
        route, found, methods = self._find(scope)
        answered.route = route.path if route else _UNKNOWN
        if route is not None and route.role is None:
            caller = _ANYONE
        else:
            caller = self._identify(access, read_bearer(headers), _address(scope))
            answered.caller = caller.name
            if route is None:
                raise _unknown_route(methods)
            assert route.role is not None
            check_role(caller, route.role)
            self._calls.count(caller.name, time.monotonic())
        check_content_type(route, headers)
        scope = {**scope, **found}
        request = Request(scope, count_body(route, headers, receive), send)
        key, address, role = read_bearer(headers), _address(scope), route.role
        return await route.answer(
            Call(
                request=request,
                caller=caller,
                served=self._served,
                is_allowed=lambda: role is None or self._is_allowed(key, address, role),
            )
        )

    def _find(self, scope: Scope) -> tuple[Route | None, Scope, tuple[str, ...]]:
        """The route of a call and what Starlette found in its path. Else the methods that the path has."""
        methods = []
        for matcher, route in self._routes:
            match, found = matcher.matches(scope)
            if match is Match.FULL:
                return route, dict(found), ()
            if match is Match.PARTIAL:
                methods.append(route.method)
        return None, {}, tuple(methods)

    def _identify(self, access: Access, key: str | None, address: str) -> Caller:
        """Who calls. An address that keeps calling without a valid key gets 429."""
        try:
            return identify(access, key, address, _today)
        except RefusedError:
            self._refusals.count(address, time.monotonic())
            raise

    def _is_allowed(self, key: str | None, address: str, role: Role) -> bool:
        """Whether a caller who was let in would be let in now. A call that lasts is no guess at a key."""
        try:
            check_role(identify(self._keeper.read(), key, address, _today), role)
        except RefusedError:
            return False
        return True

    async def _open(self, socket: WebSocket) -> None:
        try:
            call, route = self._judge_socket(socket)
        except StrandlineError as error:
            log.info("socket refused", slug=error.slug)
            with suppress(RuntimeError):
                await socket.send_denial_response(answer_error(error))
            return
        await route.serve(call)

    def _judge_socket(self, socket: WebSocket) -> tuple[SocketCall, SocketRoute]:
        access, address = self._keeper.read(), _address(socket.scope)
        check_host(access, socket.headers)
        check_origin(access, socket.headers)
        route = self._sockets.get(socket.url.path)
        key = read_bearer(socket.headers)
        if route is None:
            self._identify(access, key, address)
            raise _unknown_route(())
        role = route.role

        def identify_key(presented: str | None) -> Caller:
            caller = self._identify(self._keeper.read(), presented, address)
            check_role(caller, role)
            return caller

        caller = identify_key(key) if key or access.is_open else None
        return (
            SocketCall(
                socket=socket,
                served=self._served,
                caller=caller,
                key=key,
                identify=identify_key,
                is_allowed=lambda presented: self._is_allowed(presented, address, role),
            ),
            route,
        )


def _unknown_route(methods: tuple[str, ...]) -> RefusedError:
    if methods:
        allowed = ", ".join(methods)
        return RefusedError(
            "This route is not called with that method.",
            remedy=f"Use {allowed}.",
            slug="wrong-method",
            status=405,
            headers={"allow": allowed},
        )
    return RefusedError(
        "There is no such route.",
        remedy="`docs/reference/server.md` lists the routes.",
        slug="unknown-route",
        status=404,
    )


def _unexpected() -> StrandlineError:
    return StrandlineError(
        "The server failed to answer this call.",
        remedy="The log of the server says more, under the request id of this answer.",
        slug="unexpected",
    )


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _today() -> date:
    return now().date()


async def _never(_: Request) -> Response:
    raise AssertionError("only its path is used")
