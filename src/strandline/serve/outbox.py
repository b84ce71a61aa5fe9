"""Routes about triggers, endpoints and deliveries."""

import re
from collections.abc import Callable
from typing import Literal

from starlette.responses import Response

from strandline.app import outbox
from strandline.app.clock import parse_instant
from strandline.app.outbox import Wanted
from strandline.model.deliveries import DeliveryStatus
from strandline.model.serving import Role
from strandline.pages.documents.outbox import (
    attempt_document,
    delivery_detail_document,
    endpoint_document,
    page_document,
    trigger_document,
)

from .answers import answer, describe_error
from .bodies import StrictBody, bad_parameter, check_parameters, read_body
from .declared import Call, Route
from .own_address import refuse_own_address
from .paging import page, read_limit, refuse_place
from .refused import RefusedError
from .threads import in_thread

_NUMBER = re.compile("[0-9]{1,18}")
"""As catalogs number deliveries."""
_FILTERS = ("endpoint", "trigger", "status", "since", "until")


class ReplayBody(StrictBody):
    endpoint: str | None = None
    trigger: str | None = None
    status: Literal["delivered", "dead", "cancelled"] | None = None
    since: str | None = None
    until: str | None = None


class DisableBody(StrictBody):
    reason: str = ""


class NoBody(StrictBody):
    """Nothing is said."""


async def show_deliveries(call: Call) -> Response:
    check_parameters(call, *_FILTERS, "limit", "after")
    asked = call.request.query_params
    after = asked.get("after")
    if after is not None and not _NUMBER.fullmatch(after):
        raise refuse_place()
    if asked.get("status") not in (None, *DeliveryStatus):
        raise bad_parameter("status", "is not one of a delivery", f"Use one of {', '.join(DeliveryStatus)}.")
    wanted = _wanted(*(asked.get(name) for name in _FILTERS))
    limit, place = read_limit(call), None if after is None else int(after)
    part = await in_thread(lambda: outbox.list_deliveries(call.served.workspace, wanted, limit, place))
    return answer("deliveries", page_document(part))


async def show_delivery(call: Call) -> Response:
    check_parameters(call)
    name = call.request.path_params["id"]
    detail = await in_thread(lambda: outbox.get_delivery(call.served.workspace, name))
    return answer("delivery", delivery_detail_document(detail))


async def replay_delivery(call: Call) -> Response:
    check_parameters(call)
    await read_body(call, NoBody)
    name, actor = call.request.path_params["id"], call.caller.name
    detail = await in_thread(lambda: outbox.replay_one(call.served.workspace, name, actor))
    call.served.owed()
    return answer("delivery", delivery_detail_document(detail))


async def replay_deliveries(call: Call) -> Response:
    check_parameters(call)
    body = await read_body(call, ReplayBody)
    wanted = _wanted(body.endpoint, body.trigger, body.status, body.since, body.until)
    if wanted == Wanted():
        raise RefusedError(
            "This would replay every delivery that ever ended.",
            remedy='Name some of them, for example `{"status": "dead", "since": "2024-01-13T08:30:00Z"}`.',
            slug="bad-body",
            status=400,
        )
    replayed = await in_thread(lambda: outbox.replay_range(call.served.workspace, wanted, call.caller.name))
    call.served.owed()
    return answer("replay", {"replayed": replayed})


async def show_endpoints(call: Call) -> Response:
    check_parameters(call, "limit", "after")
    endpoints = await in_thread(lambda: outbox.list_endpoints(call.served.workspace))
    part, last = page(call, endpoints, lambda endpoint: endpoint.name)
    refused = call.served.unsendable
    documents = [
        {**endpoint_document(e), "error": describe_error(refused[e.name]) if e.name in refused else None}
        for e in part
    ]
    return answer("endpoints", {"endpoints": documents, "next": last})


async def enable_endpoint(call: Call) -> Response:
    check_parameters(call)
    await read_body(call, NoBody)
    name, actor = call.request.path_params["name"], call.caller.name
    due = await in_thread(lambda: outbox.enable(call.served.workspace, name, actor))
    call.served.owed()
    return answer("endpoint", {"endpoint": name, "state": "enabled", "due": due})


async def disable_endpoint(call: Call) -> Response:
    check_parameters(call)
    body = await read_body(call, DisableBody)
    name, actor = call.request.path_params["name"], call.caller.name
    await in_thread(lambda: outbox.disable(call.served.workspace, name, body.reason, actor))
    return answer("endpoint", {"endpoint": name, "state": "disabled"})


def make_test_route(environ: "Callable[[], dict[str, str]] | None" = None) -> Route:
    """`environ` is where secrets are read, by default the environment of the process."""

    async def test_endpoint(call: Call) -> Response:
        check_parameters(call)
        await read_body(call, NoBody)
        name, actor = call.request.path_params["name"], call.caller.name
        variables = environ() if environ else None
        refuse_own_address(call.served, outbox.get_endpoint(call.served.workspace, name))
        outcome = await in_thread(lambda: outbox.send_test(call.served.workspace, name, actor, variables))
        return answer("attempt", attempt_document(name, outcome))

    return Route(method="POST", path="/v1/endpoints/{name}/test", role=Role.OPERATE, answer=test_endpoint)


async def show_triggers(call: Call) -> Response:
    check_parameters(call, "limit", "after")
    triggers = await in_thread(lambda: outbox.list_triggers(call.served.workspace))
    part, last = page(call, triggers, lambda trigger: trigger.name)
    return answer("triggers", {"triggers": [trigger_document(t) for t in part], "next": last})


async def show_trigger(call: Call) -> Response:
    check_parameters(call)
    name = call.request.path_params["name"]
    trigger = await in_thread(lambda: outbox.get_trigger(call.served.workspace, name))
    return answer("trigger", trigger_document(trigger))


def _wanted(
    endpoint: str | None, trigger: str | None, status: str | None, since: str | None, until: str | None
) -> Wanted:
    return Wanted(
        endpoint=endpoint,
        trigger=trigger,
        status=DeliveryStatus(status) if status else None,
        since=None if since is None else parse_instant(since),
        until=None if until is None else parse_instant(until),
    )


ROUTES = (
    Route(method="GET", path="/v1/triggers", role=Role.READ, answer=show_triggers),
    Route(method="GET", path="/v1/triggers/{name}", role=Role.READ, answer=show_trigger),
    Route(method="GET", path="/v1/endpoints", role=Role.READ, answer=show_endpoints),
    Route(method="GET", path="/v1/deliveries", role=Role.READ, answer=show_deliveries),
    Route(method="GET", path="/v1/deliveries/{id}", role=Role.READ, answer=show_delivery),
    Route(method="POST", path="/v1/deliveries/replay", role=Role.OPERATE, answer=replay_deliveries),
    Route(method="POST", path="/v1/deliveries/{id}/replay", role=Role.OPERATE, answer=replay_delivery),
    Route(method="POST", path="/v1/endpoints/{name}/enable", role=Role.OPERATE, answer=enable_endpoint),
    Route(method="POST", path="/v1/endpoints/{name}/disable", role=Role.OPERATE, answer=disable_endpoint),
    make_test_route(),
)
