"""Routes with the role that each asks for. A route without a role does not exist (default-deny)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from strandline.model.serving import Role

from .served import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, once that has been judged."""

    name: str
    """The name of the access key, or `loopback`. It is the actor in the audit log."""
    role: Role
    sources: tuple[str, ...] | None = None
    """The sources that facts may be posted to. None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request, with who makes it and what is served."""

    request: Request
    caller: Caller
    served: Served
    is_allowed: Callable[[], bool]
    """Whether the call would still be let in: for answers that last, because keys expire and are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An HTTP route. Host, origin, key and role are judged before `answer` is called."""

    method: str
    path: str
    """As Starlette writes it: `/v1/datasets/{name}`."""
    role: Role | None
    """None: anyone may call it. Only health checks do without a role."""
    answer: Callable[[Call], Awaitable[Response]]
    most_bytes: int = 1 << 20
    """A larger body is refused (413) before it is read whole."""
    content_types: tuple[str, ...] = ("application/json",)
    """What a body may be. Any other content type is refused (415)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketCall:
    """A WebSocket that was not accepted yet. Host and origin have been judged, and a key in the header."""

    socket: WebSocket
    served: Served
    caller: Caller | None
    """Who calls, with a role that the route asks for. None: the key is still to come, in a message."""
    key: str | None = field(repr=False)
    """The key in the header."""
    identify: Callable[[str], Caller]
    """Who has this key. Raises RefusedError (401 or 403) if nobody, or if the role may not."""
    is_allowed: Callable[[str | None], bool]
    """Whether this key would still be let in: keys expire and are removed while sockets are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRoute:
    """A WebSocket route. `serve` accepts the socket, or closes it."""

    path: str
    role: Role
    serve: Callable[[SocketCall], Awaitable[None]]
