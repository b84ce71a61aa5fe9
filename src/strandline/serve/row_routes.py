"""Rows of a dataset, and its changes: in pages, waiting for the next, or as a stream of events."""

import json
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from starlette.responses import Response, StreamingResponse

from strandline.app.changes import ChangesPage, RowFilter, SeenChange, expired, read_page
from strandline.app.rows import RowsRequest, parse_order, read_rows
from strandline.model.errors import StrandlineError
from strandline.model.serving import Role

from .answers import answer, describe_error, write
from .bodies import bad_parameter, check_parameters, parse_json, read_wait
from .declared import Call, Route
from .graphql_routes import begin
from .paging import read_limit
from .subscriptions.feed import Feed
from .threads import in_thread

_STREAM = "text/event-stream"
_BEAT = 15.0
"""Seconds after which a stream says that it is alive."""


async def answer_rows(call: Call) -> Response:
    check_parameters(call, "where", "order_by", "known_at", "limit", "after")
    given = call.request.query_params
    request = RowsRequest(
        dataset=call.request.path_params["name"],
        where=_read_where(call),
        order_by=parse_order(given["order_by"]) if "order_by" in given else (),
        limit=read_limit(call),
        known_at=given.get("known_at"),
        after=given.get("after"),
    )
    page = await in_thread(lambda: read_rows(call.served.workspace, request))
    return answer(
        "rows",
        {
            "dataset": page.dataset,
            "version": page.version,
            "reprocessing_status": page.reprocessing_status,
            "columns": list(page.columns),
            "rows": list(page.rows),
            "next": page.next,
        },
    )


async def answer_changes(call: Call) -> Response:
    """Changes after a cursor. Without one: all that the log can tell."""
    check_parameters(call, "where", "after", "limit", "wait")
    streams = _STREAM in call.request.headers.get("accept", "")
    after = call.request.query_params.get("after")
    if streams:
        after = call.request.headers.get("last-event-id", after)
    where, limit, wait = _read_where(call), read_limit(call), read_wait(call)
    feed = await begin(call.served).hub.open(call.request.path_params["name"])
    await feed.grow()
    row_filter = await in_thread(lambda: feed.log.make_filter(where))
    begin_at = str(feed.log.find_begin(after))
    if streams:
        return StreamingResponse(
            _stream(call, feed, begin_at, row_filter, limit),
            media_type=_STREAM,
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
    page = await _read_waiting(feed, begin_at, row_filter, limit, wait)
    return answer(
        "changes",
        {"dataset": page.dataset, "changes": [_show(c) for c in page.changes], "next": page.next},
    )


async def _read_waiting(
    feed: Feed, after: str, row_filter: RowFilter, limit: int, seconds: float
) -> ChangesPage:
    """A page. If it is empty, the first one that is not, or the last one before the time is up."""
    until = monotonic() + seconds
    with feed.listening():
        while True:
            news = feed.news()
            page = await _read_page(feed, after, row_filter, limit)
            left = until - monotonic()
            if page.changes or left <= 0 or feed.stopped or not await feed.wait_for(news, left):
                return page
            after = page.next


async def _read_page(feed: Feed, after: str, row_filter: RowFilter, limit: int) -> ChangesPage:
    if feed.began_anew:
        raise expired(feed.name)
    if feed.failure is not None:
        raise feed.failure
    return await in_thread(lambda: read_page(feed.log, feed.log.parse_cursor(after), row_filter, limit))


async def _stream(
    call: Call, feed: Feed, after: str, row_filter: RowFilter, limit: int
) -> AsyncIterator[bytes]:
    """Events without an end. A reader that is slow is waited for, because it reads the log by itself."""
    with feed.listening():
        while not feed.stopped and call.is_allowed():
            news = feed.news()
            try:
                page = await _read_page(feed, after, row_filter, limit)
            except StrandlineError as error:
                text = write("error", {"error": describe_error(error)}).decode()
                yield f"event: error\ndata: {text}\n\n".encode()
                return
            for change in page.changes:
                text = json.dumps(_show(change), ensure_ascii=False, separators=(",", ":"))
                yield f"id: {change.cursor}\ndata: {text}\n\n".encode()
            after = page.next
            if page.complete and not await feed.wait_for(news, _BEAT):
                yield b": alive\n\n"


def _show(change: SeenChange) -> dict[str, object]:
    return {
        "operation": str(change.operation),
        "key": change.key,
        "data": change.row,
        "fields": list(change.fields),
        "before": change.before,
        "ts_timestamp": change.timestamp,
        "ts_cursor": change.cursor,
    }


def _read_where(call: Call) -> Any:
    text = call.request.query_params.get("where")
    if text is None:
        return None
    try:
        return parse_json(text.encode())
    except StrandlineError:
        remedy = 'Write for example `where={"quantity": {"_gte": 10}}`, encoded as in any URL.'
        raise bad_parameter("where", "is not a condition in JSON", remedy) from None


ROUTES = (
    Route(method="GET", path="/v1/datasets/{name}/rows", role=Role.READ, answer=answer_rows),
    Route(method="GET", path="/v1/datasets/{name}/changes", role=Role.READ, answer=answer_changes),
)
