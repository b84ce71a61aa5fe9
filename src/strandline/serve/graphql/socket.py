"""The protocol `graphql-transport-ws` on a WebSocket of Starlette: one connection."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from strandline.model.errors import CallError, StrandlineError
from strandline.model.json_values import read_json
from strandline.serve.subscriptions.outbox import Outbox, Ticket

from .engine import Engine, describe, show_errors
from .limits import refuse
from .operations import Operation, RefusedOperationError
from .selection import compile_subscription

PROTOCOL = "graphql-transport-ws"
MOST_SUBSCRIPTIONS = 100
_ANSWERS = Ticket()
"""Messages of the connection itself."""
PATIENCE = 10.0
"""Seconds until a connection has to say who calls."""
_CLOSING = 5.0
"""Seconds for which the close of a connection is waited for."""
_LONGEST_REASON = 123
"""Bytes that the frame of a close has room for."""
RECHECK = 5.0
"""Seconds between two looks at whether the key of a connection is still valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a connection is let in."""

    known: bool
    """Its headers have said who calls. Otherwise its first message does."""
    key: str | None = field(repr=False)
    """The key in the headers."""
    identify: Callable[[str], object]
    """Who has an access key. Raises CallError if nobody has it, or if it does not allow to read."""
    is_allowed: Callable[[str | None], bool]
    """Whether a key that was accepted still is."""


class Close(IntEnum):
    TRY_AGAIN_LATER = 1013
    BAD_REQUEST = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    PROTOCOL_NOT_ACCEPTABLE = 4406
    INITIALISATION_TIMEOUT = 4408
    SUBSCRIBER_EXISTS = 4409
    TOO_MANY_INITIALISATIONS = 4429


class _ClosedError(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def serve_socket(socket: WebSocket, engine: Engine, entry: Entry) -> None:
    """Serve a WebSocket whose host and origin have been judged."""
    if PROTOCOL not in socket.scope.get("subprotocols", ()):
        await socket.accept()
        await socket.close(Close.PROTOCOL_NOT_ACCEPTABLE, f"the subprotocol is {PROTOCOL}")
        return
    await socket.accept(PROTOCOL)
    connection = _Connection(socket, engine, entry)
    with engine.hub.connected(connection):
        await connection.serve()


class _Connection:
    def __init__(self, socket: WebSocket, engine: Engine, entry: Entry) -> None:
        self._socket = socket
        self._engine = engine
        self._entry = entry
        self._key = entry.key
        self._initialised = self._acknowledged = False
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        self._outbox = Outbox(self._fell_behind)
        self._closing: asyncio.Future[_ClosedError] = asyncio.get_running_loop().create_future()

    def close_soon(self, code: int, reason: str) -> None:
        if not self._closing.done():
            self._closing.set_result(_ClosedError(code, reason))

    async def serve(self) -> None:
        """Until either side closes."""
        reading = asyncio.create_task(self._read())
        sending = asyncio.create_task(self._outbox.send_all(self._socket.send_text))
        waiting = asyncio.create_task(self._require_access())
        tasks = {reading, sending, waiting}
        try:
            ends: set[asyncio.Future[Any]] = {reading, sending, self._closing}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks |= set(self._subscriptions.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        failures = [task.exception() for task in (reading, sending) if task.done() and not task.cancelled()]
        for failure in failures:
            if isinstance(failure, _ClosedError):
                self.close_soon(failure.code, failure.reason)
            elif failure is not None and not isinstance(
                failure, WebSocketDisconnect | OSError | RuntimeError
            ):
                raise failure
        if self._closing.done():
            await self._close(self._closing.result())

    async def _close(self, closed: _ClosedError) -> None:
        """Whoever does not read does not answer the close either."""
        reason = closed.reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
        if self._socket.client_state is WebSocketState.CONNECTED:
            with suppress(TimeoutError, RuntimeError, OSError, WebSocketDisconnect):
                async with asyncio.timeout(_CLOSING):
                    await self._socket.close(closed.code, reason)

    def _fell_behind(self) -> None:
        self.close_soon(Close.TRY_AGAIN_LATER, "too far behind: resume after the last cursor")

    async def _require_access(self) -> None:
        await asyncio.sleep(PATIENCE)
        if not self._initialised:
            self.close_soon(Close.INITIALISATION_TIMEOUT, "Connection initialisation timeout")
        while self._entry.is_allowed(self._key):
            await asyncio.sleep(RECHECK)
        self.close_soon(Close.FORBIDDEN, "Forbidden")

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            match message.get("type"):
                case "connection_init":
                    self._initialise(message.get("payload"))
                case "ping":
                    self._answer("pong")
                case "pong":
                    pass
                case "subscribe":
                    self._subscribe(message)
                case "complete":
                    self._complete(_read_id(message))
                case _:
                    raise _ClosedError(Close.BAD_REQUEST, "Invalid message received")

    async def _receive(self) -> dict[str, Any]:
        received = await self._socket.receive()
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received.get("code") or 1005)
        try:
            message = read_json(received.get("text") or "")
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise _ClosedError(Close.BAD_REQUEST, "Invalid message received")
        return message

    def _initialise(self, payload: object) -> None:
        if self._initialised:
            raise _ClosedError(Close.TOO_MANY_INITIALISATIONS, "Too many initialisation requests")
        self._initialised = True
        key = payload.get("access_key") if isinstance(payload, dict) else None
        try:
            if key is not None or not self._entry.known:
                self._key = key if isinstance(key, str) else ""
                self._entry.identify(self._key)
        except CallError as error:
            raise _ClosedError(Close.FORBIDDEN, "Forbidden") from error
        if not self._engine.hub.admit(self):
            raise _ClosedError(Close.TRY_AGAIN_LATER, "too many connections")
        self._acknowledged = True
        self._answer("connection_ack")

    def _subscribe(self, message: dict[str, Any]) -> None:
        if not self._acknowledged:
            raise _ClosedError(Close.UNAUTHORIZED, "Unauthorized")
        name, payload = _read_id(message), message.get("payload")
        if not isinstance(payload, dict) or not isinstance(payload.get("query"), str):
            raise _ClosedError(Close.BAD_REQUEST, "Invalid message received")
        if name in self._subscriptions:
            raise _ClosedError(Close.SUBSCRIBER_EXISTS, f"Subscriber for {name} already exists")
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            what = f"A connection may have at most {MOST_SUBSCRIPTIONS} subscriptions."
            self._fail(name, show_errors(refuse(what, "TOO_MANY_SUBSCRIPTIONS")))
            return
        task = asyncio.create_task(self._answer_operation(name, payload))
        self._subscriptions[name] = task
        task.add_done_callback(lambda _: self._forget(name, task))

    def _complete(self, name: str) -> None:
        if (task := self._subscriptions.pop(name, None)) is not None:
            task.cancel()

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._subscriptions.get(name) is task:
            del self._subscriptions[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.close_soon(1011, "internal error")
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a subscription failed", "exception": error}
            )

    async def _answer_operation(self, name: str, payload: dict[str, Any]) -> None:
        try:
            operation = await self._engine.prepare(payload)
            if operation.is_subscription:
                await self._follow(name, operation)
            else:
                answer = await self._engine.execute(operation)
                await self._outbox.put(_ANSWERS, _message("next", name, answer))
                self._tell("complete", name)
        except RefusedOperationError as refused:
            self._fail(name, show_errors(*refused.errors))
        except StrandlineError as error:
            self._fail(name, show_errors(describe(error)))

    async def _follow(self, name: str, operation: Operation) -> None:
        hub, wanted = self._engine.hub, compile_subscription(operation)
        feed = await hub.open_when_built(wanted.dataset)
        ticket = Ticket(before=f'{{"id":{json.dumps(name)},"type":"next","payload":', after="}")
        await feed.subscribe(hub.workspace, wanted, self._outbox, ticket, self._begin_again)

    def _begin_again(self) -> None:
        self.close_soon(1012, "the change log began anew, or the server restarts")

    def _fail(self, name: str, errors: list[dict[str, Any]]) -> None:
        self._tell("error", name, errors)

    def _tell(self, kind: str, name: str, payload: object = None) -> None:
        self._outbox.push(_ANSWERS, _message(kind, name, payload))

    def _answer(self, kind: str) -> None:
        self._outbox.push(_ANSWERS, json.dumps({"type": kind}))


def _message(kind: str, name: str, payload: object = None) -> str:
    message = {"id": name, "type": kind, **({} if payload is None else {"payload": payload})}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _read_id(message: dict[str, Any]) -> str:
    name = message.get("id")
    if not isinstance(name, str) or not name:
        raise _ClosedError(Close.BAD_REQUEST, "Invalid message received")
    return name
