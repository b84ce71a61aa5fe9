"""Where the command line of this machine hands its requests to the server that holds the lake.

The answer is a line of JSON for everything that happens, as it happens, and one for the end. If the caller
goes away, a recorded request goes on; a query that nobody waits for is left out.
"""

import hmac
import json
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from strandline.app.handover import PATH, Refusal
from strandline.app.work import WORK, from_wire, to_wire
from strandline.model.errors import CallError, StrandlineError
from strandline.model.requests import COMMAND_LINE
from strandline.model.serving import Role

from .declared import Call, Route
from .served import Dispatching

_MOST_BYTES = 4 << 20


def make_handover_route(work: Dispatching) -> Route:
    async def answer(call: Call) -> Response:
        return await _answer(call, work)

    return Route(method="POST", path=PATH, role=Role.OPERATE, answer=answer, most_bytes=_MOST_BYTES)


async def _answer(call: Call, work: Dispatching) -> Response:
    """Do what the command line asks for, and tell everything that happens."""
    served = call.served
    scheme, _, key = call.request.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not served.machine_key or not hmac.compare_digest(key, served.machine_key):
        return _refuse(Refusal.KEY, "This route is for the command line of this machine.", 401)
    try:
        body = json.loads(await call.request.body())
        other = _find_other(body, served.workspace.project.folder)
        if other is not None:
            return other
        verb, request = str(body["verb"]), from_wire(body["request"])
    except (KeyError, TypeError, ValueError):
        return _refuse(Refusal.CALL, "This is not a request of the command line.", 400)
    try:
        if verb not in WORK:
            raise CallError(f"There is no work `{verb}`.", remedy="Name a verb.", slug="unknown-work")
        record = work.submit(verb, request, COMMAND_LINE)
    except StrandlineError as error:
        return StreamingResponse(_only(error), media_type="application/x-ndjson")
    return StreamingResponse(_tell(work, record.request, verb), media_type="application/x-ndjson")


def _find_other(body: Any, folder: str) -> Response | None:
    """Refuse the command line of another Strandline or of another project over the same lake."""
    if body["version"] != version("strandline"):
        return _refuse(Refusal.VERSION, version("strandline"), 409)
    if body["project"] != folder:
        return _refuse(Refusal.PROJECT, folder, 409)
    return None


def _refuse(reason: Refusal, what: str, status: int) -> Response:
    return JSONResponse({"error": {"slug": str(reason), "message": what, "remedy": ""}}, status)


async def _only(error: StrandlineError) -> AsyncIterator[str]:
    yield _line({"error": to_wire(error)})


async def _tell(work: Dispatching, request: str, verb: str) -> AsyncIterator[str]:
    ended = False
    try:
        yield _line({"request": request, "recorded": WORK[verb].recorded})
        async for happening in work.watch(request):
            yield _line({"happened": to_wire(happening)})
        ended = True
        outcome, error = work.find_end(request)
        yield _line({"error": to_wire(error)} if error else {"outcome": to_wire(outcome)})
    finally:
        if not ended:
            work.abandon(request)


def _line(document: object) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
