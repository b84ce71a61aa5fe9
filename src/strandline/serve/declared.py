"""A route with the role that it asks for. A route without a role does not exist (default-deny)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

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
