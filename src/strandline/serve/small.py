"""A small application for what this process needs of itself: its health, and the command line beside it."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as Matcher

from strandline.model.requests import COMMAND_LINE
from strandline.model.serving import Role

from .declared import Call, Caller, Route
from .served import Served


def make_small_application(served: Served, routes: Sequence[Route]) -> Starlette:
    async def answer_health(_: Request) -> Response:
        return JSONResponse({"schema": "strandline/health/v1", "alive": True})

    def bind(route: Route) -> Matcher:
        async def answer(request: Request) -> Response:
            caller = Caller(name=COMMAND_LINE, role=Role.OPERATE)
            return await route.answer(Call(request=request, caller=caller, served=served))

        return Matcher(route.path, answer, methods=[route.method])

    return Starlette(routes=[Matcher("/healthz", answer_health), *map(bind, routes)])
