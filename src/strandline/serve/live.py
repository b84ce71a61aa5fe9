"""GraphQL and those who follow changes: a part of a server that begins with the first call that needs it."""

import asyncio
from collections.abc import Callable

from strandline.app.reading import Readable

from .graphql.engine import Engine
from .measures import Measures
from .subscriptions.hub import Hub


class Live:
    """`wake` and `close` may be called by any thread, the rest by the event loop that answers calls."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._following: asyncio.Task[None] | None = None

    def begin(self, find_workspace: Callable[[], Readable], measures: Measures) -> Engine:
        """Begin, unless it has begun."""
        if self._engine is None:
            hub = Hub(find_workspace, lambda name, dataset, by: measures.add(name, dataset, by=by))
            self._loop = asyncio.get_running_loop()
            self._following = self._loop.create_task(hub.follow())
            self._engine = Engine(hub)
        return self._engine

    def wake(self) -> None:
        """Something was published. It is told without waiting for the next look at the lake."""
        if self._engine is not None:
            self._engine.hub.wake()

    def close(self) -> None:
        """Close all connections with 1012, and end streams, because the server ends."""
        if self._engine is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._engine is not None:
            self._engine.hub.close()
        if self._following is not None:
            self._following.cancel()
