"""The route that facts are posted to. They are safe on disk before it answers."""

import asyncio
from dataclasses import dataclass

from starlette.responses import Response

from strandline.app.planning import RunRequest
from strandline.app.receiving import (
    MOST_BYTES,
    Posted,
    Published,
    Receipt,
    TooLargeError,
    find_published,
    receive,
    require_source,
)
from strandline.model.errors import CallError
from strandline.model.files import Content
from strandline.model.requests import RequestRecord, RequestStatus
from strandline.model.serving import Role
from strandline.pages.documents.run import task_document

from .access import check_source
from .answers import answer
from .bodies import check_parameters, read_wait
from .declared import Call, Route
from .refused import RefusedError
from .served import Work
from .threads import in_thread

LINES = "application/x-ndjson"


def make_facts_route() -> Route:
    return Route(
        method="POST",
        path="/v1/facts/{source}",
        role=Role.INGEST,
        answer=_Facts().answer,
        most_bytes=MOST_BYTES,
        content_types=("application/json", LINES),
    )


@dataclass(slots=True)
class _Facts:
    """One per server."""

    _asked: RequestRecord | None = None
    """The run that waiting posters share until it begins: it receives what all of them have posted."""

    async def answer(self, call: Call) -> Response:
        check_parameters(call, "wait")
        seconds, posted = read_wait(call), await _read(call)
        served = call.served
        try:
            receipt = await in_thread(lambda: receive(served.workspace, posted))
        except TooLargeError as error:
            raise RefusedError(error.what, remedy=error.remedy, slug=error.slug, status=413) from error
        if not receipt.duplicate:
            served.measures.add("facts_received_total", receipt.source, by=receipt.received)
            served.receipts.note(receipt, call.caller.name)
        if not seconds:
            if not receipt.duplicate:
                served.work.wake()
            return answer("facts", _describe(receipt), 202)
        published = await self._wait(call, receipt, seconds)
        if published is None:
            return answer("facts", _describe(receipt), 202)
        run = {"run": published.run, "tasks": [task_document(result) for result in published.tasks]}
        return answer("facts", {**_describe(receipt), **run})

    async def _wait(self, call: Call, receipt: Receipt, seconds: float) -> Published | None:
        """The run that has published a post. None if the time is up, or if the run failed."""
        work, workspace = call.served.work, call.served.workspace
        ends_at = asyncio.get_running_loop().time() + seconds
        request = await self._ask(call)
        record = await work.wait(request, max(0.0, ends_at - asyncio.get_running_loop().time()))
        if not record.status.is_over:
            return None
        return await in_thread(lambda: find_published(workspace, receipt))

    async def _ask(self, call: Call) -> str:
        """A run that begins after the post was kept: one that waits already, or a new one."""
        work, asked = call.served.work, self._asked
        if asked is not None and await _is_pending(work, asked.request):
            return asked.request
        self._asked = await in_thread(lambda: work.submit("run", RunRequest(), call.caller.name))
        return self._asked.request


async def _is_pending(work: Work, request: str) -> bool:
    try:
        return (await work.wait(request, 0)).status is RequestStatus.PENDING
    except CallError:  # it ended so long ago that it is forgotten
        return False


async def _read(call: Call) -> Posted:
    """What was posted. A name that the key may not post to is refused before the body is read."""
    source = call.request.path_params["source"]
    check_source(call.caller, source)
    require_source(call.served.workspace, source)
    keys = call.request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise RefusedError(
            "The call has several `Idempotency-Key` headers.",
            remedy="Send one.",
            slug="bad-idempotency-key",
            status=400,
        )
    stated = call.request.headers.get("content-type", "").split(";")[0].strip().lower()
    return Posted(
        source=source,
        key=keys[0] if keys else None,
        content=Content.LINES if stated == LINES else Content.JSON,
        body=await call.request.body(),
    )


def _describe(receipt: Receipt) -> dict[str, object]:
    return {
        "source": receipt.source,
        "received": receipt.received,
        "position": list(receipt.position),
        "duplicate": receipt.duplicate,
    }
