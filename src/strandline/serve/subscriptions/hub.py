"""All feeds of a server, and who is connected."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from strandline.app.changes import FollowedLog, require_published
from strandline.app.reading import Readable
from strandline.model.errors import CallError, StrandlineError

from .feed import Count, Feed

MOST_CONNECTIONS = 1_000
NEVER_BUILT = "never-built"
RESTARTING = 1012
_POLL = 1.0
"""Seconds after which changes arrive that another process has published."""


class Connection(Protocol):
    def close_soon(self, code: int, reason: str) -> None:
        """Close it, without waiting for that."""
        ...


class Hub:
    """Made where an event loop runs, and used by that alone. `wake` may be called by any thread."""

    def __init__(self, find_workspace: Callable[[], Readable], count: Count) -> None:
        self._find_workspace = find_workspace
        """The project that is in force now."""
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, Feed] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._connections: set[Connection] = set()
        self._admitted: set[Connection] = set()
        self._news = asyncio.Event()
        self._count = count

    @property
    def workspace(self) -> Readable:
        return self._find_workspace()

    def wake(self) -> None:
        """Something may have been published."""
        self._loop.call_soon_threadsafe(self._news.set)

    async def follow(self) -> None:
        """Read what is published and tell it, until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(_POLL):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            await self.look()

    async def look(self) -> None:
        """Tell what was published since the last time, to those who listen."""
        for name, feed in list(self._feeds.items()):
            if not feed.listeners:
                continue
            with suppress(StrandlineError):  # the storage fails: readers resume when it works
                await feed.grow()
            if feed.ended:
                self._feeds.pop(name, None)

    async def open(self, name: str) -> Feed:
        """The feed of a dataset. Raises CallError if it has no change log."""
        require_published(self.workspace.project, name)  # names that are nobody's leave nothing behind
        async with self._opening.setdefault(name, asyncio.Lock()):
            feed = self._feeds.get(name)
            if feed is not None and not feed.listeners:
                await feed.grow()  # nobody listened, so it was not followed
            if feed is None or feed.ended:
                workspace = self.workspace
                log = await asyncio.to_thread(FollowedLog, workspace, name)
                feed = self._feeds[name] = Feed(log, workspace.project.row_keys[name], self._count)
            return feed

    async def open_when_built(self, name: str) -> Feed:
        """The feed of a dataset, once its change log has been built. Raises CallError if it has none."""
        while True:
            try:
                return await self.open(name)
            except CallError as error:
                if error.slug != NEVER_BUILT:
                    raise
            await asyncio.sleep(_POLL)

    @contextmanager
    def connected(self, connection: Connection) -> Iterator[None]:
        self._connections.add(connection)
        try:
            yield
        finally:
            self._connections.discard(connection)
            self._admitted.discard(connection)

    def admit(self, connection: Connection) -> bool:
        """False if there are too many already. Who has not shown a key takes no place of those who have."""
        if len(self._admitted) >= MOST_CONNECTIONS:
            return False
        self._admitted.add(connection)
        return True

    def close(self) -> None:
        """Close all connections, because the server ends. Their readers may resume."""
        for connection in list(self._connections):
            connection.close_soon(RESTARTING, "the server restarts")
        for feed in self._feeds.values():
            feed.end()
