"""`POST /graphql` and the WebSocket `/graphql`."""

import json

from starlette.responses import Response

from strandline.model.errors import StrandlineError
from strandline.model.serving import Role

from .answers import JSON
from .bodies import parse_json
from .declared import Call, Route, SocketCall, SocketRoute
from .graphql.engine import Engine, describe, show_errors
from .graphql.limits import refuse
from .graphql.operations import RefusedOperationError
from .graphql.socket import Entry, serve_socket
from .served import Served

_RESPONSE = "application/graphql-response+json"
_KEYS = ("query", "operationName", "variables", "extensions")


def begin(served: Served) -> Engine:
    return served.live.begin(lambda: served.workspace, served.measures)


async def answer_graphql(call: Call) -> Response:
    """One query. A subscription needs a WebSocket."""
    body = parse_json(await call.request.body())
    engine = begin(call.served)
    try:
        if not isinstance(body, dict) or not set(body) <= set(_KEYS):
            what = f"The body is an object with {', '.join(_KEYS)}."
            raise RefusedOperationError(refuse(what, "BAD_REQUEST"))
        operation = await engine.prepare(body)
        if operation.is_subscription:
            what = "A subscription needs a WebSocket with the protocol graphql-transport-ws."
            raise RefusedOperationError(refuse(what, "SUBSCRIPTION_OVER_HTTP"))
        return _answer(call, await engine.execute(operation), 200)
    except RefusedOperationError as refused:
        return _answer(call, {"errors": show_errors(*refused.errors)}, 400)
    except StrandlineError as error:
        return _answer(call, {"errors": show_errors(describe(error))}, 503)


async def serve_graphql(call: SocketCall) -> None:
    engine = begin(call.served)
    entry = Entry(
        known=call.caller is not None, key=call.key, identify=call.identify, is_allowed=call.is_allowed
    )
    await serve_socket(call.socket, engine, entry)


def _answer(call: Call, document: dict[str, object], status: int) -> Response:
    asked = _RESPONSE in call.request.headers.get("accept", "")
    return Response(
        json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(),
        status,
        headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
        media_type=_RESPONSE if asked else JSON,
    )


ROUTES = (Route(method="POST", path="/graphql", role=Role.READ, answer=answer_graphql),)
SOCKETS = (SocketRoute(path="/graphql", role=Role.READ, serve=serve_graphql),)
