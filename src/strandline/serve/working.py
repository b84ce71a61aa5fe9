"""Routes that ask for work: runs, backfills, invalidations, verification. And the requests that they make."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response

from strandline.app.clock import parse_instant
from strandline.app.invalidate import InvalidateRequest, check_invalidation
from strandline.app.planning import RunRequest
from strandline.app.run import check_request
from strandline.app.run_log import get_request
from strandline.app.verify import VerifyRequest, check_names
from strandline.model.requests import RequestRecord
from strandline.model.serving import Role
from strandline.pages.documents.plan import plan_document
from strandline.pages.documents.requests import request_document

from .answers import answer
from .bodies import StrictBody, check_parameters, read_body, read_wait
from .declared import Call, Route
from .refused import RefusedError
from .threads import in_thread

Text = Annotated[str, Field(min_length=1)]
"""Not empty: for a request, an empty scope is everything."""
Names = Annotated[list[Text], Field(min_length=1)]
NamesOrAll = bool | Names | None
"""`true` stands for all."""


class RunBody(StrictBody):
    select: Text | Names | None = None
    as_of: str | None = None
    accept_guard: NamesOrAll = None
    quiet: NamesOrAll = None


class BackfillBody(StrictBody):
    job: Text
    partitions: Names | Literal["all"] | None = None
    where: Text | None = None
    stale: bool = False
    reason: str = ""
    dry_run: bool = False


class InvalidationBody(StrictBody):
    dataset: Text
    partition_key: Text | None = None
    row_filter: dict[str, Any] | None = None
    reason: Text
    source_event: dict[str, Any] = Field(default_factory=dict)


class VerifyBody(StrictBody):
    names: Names | None = None


async def ask_for_run(call: Call) -> Response:
    check_parameters(call, "wait")
    body = await read_body(call, RunBody)
    request = RunRequest(
        select=" ".join(body.select) if isinstance(body.select, list) else body.select,
        as_of=None if body.as_of is None else parse_instant(body.as_of),
        accept_guard=_names(body.accept_guard),
        quiet=_names(body.quiet),
    )
    await in_thread(lambda: check_request(call.served.workspace, request))
    return await _submit(call, "run", request)


async def ask_for_backfill(call: Call) -> Response:
    check_parameters(call, "wait")
    body = await read_body(call, BackfillBody)
    if sum((body.partitions is not None, body.where is not None, body.stale)) != 1:
        raise RefusedError(
            "A backfill needs one of `partitions`, `where` and `stale`.",
            remedy='Write, for example, `{"job": "totals", "partitions": "all"}`.',
            slug="bad-body",
            status=400,
        )
    request = RunRequest(
        backfill=body.job,
        only_stale=body.stale,
        partitions=tuple(body.partitions) if isinstance(body.partitions, list) else (),
        where=body.where or "",
        reason=body.reason,
    )
    plan, held = await in_thread(lambda: check_request(call.served.workspace, request))
    if body.dry_run:
        return answer("plan", plan_document(plan, held))
    return await _submit(call, "backfill", request, {"tasks": plan_document(plan, held)["tasks"]})


async def ask_for_invalidation(call: Call) -> Response:
    check_parameters(call, "wait")
    body = await read_body(call, InvalidationBody)
    if (body.partition_key is None) == (body.row_filter is None):
        raise RefusedError(
            "An invalidation needs one of `partition_key` and `row_filter`.",
            remedy='Write, for example, `"row_filter": {"block_number": {"gte": 995}}`.',
            slug="bad-body",
            status=400,
        )
    request = InvalidateRequest(
        dataset=body.dataset,
        reason=body.reason,
        row_filter=body.row_filter,
        partition=body.partition_key or "",
        source_event=body.source_event,
    )
    await in_thread(lambda: check_invalidation(call.served.workspace, request))
    return await _submit(call, "invalidate", request)


async def ask_for_verification(call: Call) -> Response:
    check_parameters(call, "wait")
    body = await read_body(call, VerifyBody)
    request = VerifyRequest(names=tuple(body.names or ()))
    await in_thread(lambda: check_names(call.served.workspace, request))
    return await _submit(call, "verify", request)


async def show_request(call: Call) -> Response:
    check_parameters(call)
    name = call.request.path_params["request"]
    record = await in_thread(lambda: get_request(call.served.workspace, name))
    return answer("request", await in_thread(lambda: request_document(record)))


async def _submit(
    call: Call, verb: str, request: object, more: Mapping[str, object] | None = None
) -> Response:
    """202 with the request, or 200 with its result if the caller waits and it ends in time."""
    seconds = read_wait(call)
    work = call.served.work
    record: RequestRecord = await in_thread(lambda: work.submit(verb, request, call.caller.name))
    if seconds:
        record = await work.wait(record.request, seconds)
    if record.status.is_over:
        return answer("request", await in_thread(lambda: request_document(record)))
    return answer("request", {"request": record.request, "status": record.status, **(more or {})}, 202)


def _names(wanted: NamesOrAll) -> tuple[str, ...] | None:
    """As requests have it: None for nothing, empty for all."""
    match wanted:
        case None | False:
            return None
        case True:
            return ()
        case _:
            return tuple(wanted)


ROUTES = (
    Route(method="POST", path="/v1/runs", role=Role.OPERATE, answer=ask_for_run),
    Route(method="POST", path="/v1/backfill", role=Role.OPERATE, answer=ask_for_backfill),
    Route(method="POST", path="/v1/invalidations", role=Role.OPERATE, answer=ask_for_invalidation),
    Route(method="POST", path="/v1/verify", role=Role.OPERATE, answer=ask_for_verification),
    Route(method="GET", path="/v1/requests/{request}", role=Role.READ, answer=show_request),
)
