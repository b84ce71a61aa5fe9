"""`strandline serve`: one process with an event loop, the dispatcher's thread and that of the deliveries."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from strandline.app import serving
from strandline.app.reading import open_reading
from strandline.app.workspace import Workspace, open_workspace
from strandline.model.errors import OutsideError

from . import counting, graphql_routes, handover, row_routes
from .access import require_guarded
from .application import make_application
from .deliveries import Deliverer
from .dispatcher import Dispatcher
from .facts import make_facts_route
from .logs import configure_logs, log_libraries
from .routes import make_routes
from .served import Served

_CONNECTIONS_END = 5
"""Seconds that answers have to end once the server stops. Sockets are closed at once, with 1012."""
_WORK_ENDS = 15.0
"""Seconds that the work in progress has to end."""
_LARGEST_MESSAGE = 1 << 20
"""Bytes that a client may send over a WebSocket at once, as in a body."""
_UNASKED = ("/healthz", "/readyz", "/metrics")
"""Calls of monitoring systems do not keep a server awake that ends when nobody asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    folder: Path
    host: str = "127.0.0.1"
    port: int = 8321
    dispatch: bool = True
    idle_stop: timedelta | None = None


def serve(
    options: ServeOptions,
    started: Callable[[str], None] = lambda _: None,
    quiet: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> bool:
    """Serve until a signal or idleness ends it. Whether its work ended in time.

    `started` is called with the address once calls are answered. `quiet` is entered while Spark starts.
    """
    reading = open_reading(options.folder)
    require_guarded(reading.project.settings.serve, options.host)
    configure_logs()
    with ExitStack() as stack:
        listening = stack.enter_context(_listen(options.host, options.port))
        workspace = stack.enter_context(open_workspace(options.folder, project=reading.project))
        if options.dispatch:
            stack.enter_context(serving.holding_lake(workspace))
        return _serve(options, workspace, listening, started, quiet)


def _serve(
    options: ServeOptions,
    workspace: Workspace,
    listening: socket.socket,
    started: Callable[[str], None],
    quiet: Callable[[], AbstractContextManager[object]],
) -> bool:
    dispatcher, deliverer = Dispatcher(dispatching=options.dispatch, quiet=quiet), Deliverer()
    served = Served(workspace=workspace, work=dispatcher, machine_key=serving.make_key())
    routes = (
        *make_routes(),
        make_facts_route(),
        *row_routes.ROUTES,
        *graphql_routes.ROUTES,
        handover.make_handover_route(dispatcher),
    )
    watched = Activity(make_application(served, routes, graphql_routes.SOCKETS))
    served.owed = deliverer.wake
    dispatcher.on_run += [
        lambda _: deliverer.wake(),
        lambda run: counting.count_run(served.measures, run),
        lambda _: served.receipts.record_posters(served.workspace),
        lambda run: counting.log_timelines(served.workspace, run),
    ]
    dispatcher.on_published.append(lambda _: served.live.wake())
    dispatcher.on_published.append(
        lambda run: served.receipts.time_published(served.workspace, run, served.measures)
    )
    deliverer.on_sent.append(lambda sent: counting.count_sent(served.measures, sent))
    log_libraries()
    server = Server(watched, listening)
    shown, reached = _addresses(options.host, listening)
    served.address = reached

    def stopping() -> None:
        dispatcher.dismiss()
        served.live.close()

    dispatcher.start(served)
    if options.dispatch:
        deliverer.start(served)
        machine = serving.MachineKey(address=reached, key=served.machine_key)
        serving.announce(workspace, machine)
    try:
        server.serve_until_stopped(
            lambda: started(shown),
            lambda: _is_idle(options.idle_stop, watched, dispatcher),
            stopping,
        )
    finally:
        ended = dispatcher.stop(_WORK_ENDS)
        served.receipts.record_posters(served.workspace)
        if options.dispatch:
            deliverer.stop(_CONNECTIONS_END)
    return ended


def _is_idle(after: timedelta | None, watched: "Activity", dispatcher: Dispatcher) -> bool:
    if after is None:
        return False
    if dispatcher.state().doing:
        watched.touch()
    return watched.idle_seconds() >= after.total_seconds()


class Activity:
    """Passes calls on, and knows since when nobody has asked for anything."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self._open = 0
        self._last = time.monotonic()

    def touch(self) -> None:
        self._last = time.monotonic()

    def idle_seconds(self) -> float:
        return 0.0 if self._open else time.monotonic() - self._last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in _UNASKED:
            await self._application(scope, receive, send)
            return
        self._open += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._open -= 1
            self.touch()


class Server:
    """uvicorn, with an end: by a signal, or when nobody asks any more."""

    def __init__(self, application: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_CONNECTIONS_END,
            ws_per_message_deflate=False,  # it costs memory for each connection, and time for each message
            ws_max_size=_LARGEST_MESSAGE,
        )
        self._server = _Uvicorn(config)
        self._listening = listening

    def serve_until_stopped(
        self, started: Callable[[], None], is_idle: Callable[[], bool], stopping: Callable[[], None]
    ) -> None:
        """`stopping` is called in the event loop before answers that are being given have to end."""

        async def watch() -> None:
            while not self._server.started:
                await asyncio.sleep(0.02)
            started()
            while not self._server.should_exit:
                await asyncio.sleep(0.1)
                if is_idle():
                    self._server.should_exit = True
            stopping()

        async def run() -> None:
            watching = asyncio.create_task(watch())
            try:
                await self._server.serve(sockets=[self._listening])
            finally:
                watching.cancel()

        asyncio.run(run())


class _Uvicorn(uvicorn.Server):
    """uvicorn raises the signal that ended it again when it has ended. Here it is an ordinary end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        import signal

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, earlier in before.items():
                signal.signal(number, earlier)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True


@contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    """Take the port before anything else is done. Otherwise the error says that it is in use."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Without the protocol asyncio does not know that it is TCP, and each answer waits 40 ms for the
        # client to acknowledge its head.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        raise OutsideError(
            f"The port {port} of `{host}` cannot be used: {error.strerror or error}.",
            remedy="Stop the process that listens there, or choose another one with `--port N`.",
            slug="port-in-use",
        ) from error
    with listening:
        yield listening


def _addresses(host: str, listening: socket.socket) -> tuple[str, str]:
    """The address as people type it, and the one by which this machine reaches the server."""
    port = listening.getsockname()[1]
    bound = str(listening.getsockname()[0])
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, bound)
    return f"http://{_bracketed(host)}:{port}", f"{_bracketed(reached)}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
