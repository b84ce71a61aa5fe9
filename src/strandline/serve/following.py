"""What happens while a request is executed, for any number of callers that follow it."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator

from strandline.app.watching import Happening
from strandline.model.errors import StrandlineError

_KEPT = 200
"""Requests that ended and can still be followed from their beginning."""


class Following:
    """One request: what has happened so far, and its end. Any thread may add, any event loop may follow."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []
        self.outcome: object = None
        self.error: StrandlineError | None = None
        self.ended = False
        self._lock = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def add(self, happening: Happening) -> None:
        with self._lock:
            self.happenings.append(happening)
            self._wake()

    def end(self, outcome: object = None, error: StrandlineError | None = None) -> None:
        with self._lock:
            self.outcome, self.error, self.ended = outcome, error, True
            self._wake()

    def begin_again(self) -> None:
        """The work was given back. Whoever executes it next tells everything from the start."""
        with self._lock:
            self.happenings.clear()

    @property
    def is_followed(self) -> bool:
        return bool(self._waiting)

    async def follow(self) -> AsyncIterator[Happening]:
        """What happened and what happens, until the end."""
        done = 0
        with _Bell(self._lock, self._waiting) as bell:
            while True:
                bell.clear()
                with self._lock:
                    new, ended = self.happenings[done:], self.ended
                for happening in new:
                    yield happening
                done += len(new)
                if ended:
                    return
                await bell.wait()

    async def wait(self, seconds: float) -> bool:
        """Whether it ended in time."""
        until = asyncio.get_running_loop().time() + seconds
        with _Bell(self._lock, self._waiting) as bell:
            while not self.ended:
                bell.clear()
                left = until - asyncio.get_running_loop().time()
                if self.ended or left <= 0:
                    break
                try:
                    await asyncio.wait_for(bell.wait(), left)
                except TimeoutError:
                    break
        return self.ended

    def _wake(self) -> None:
        for loop, event in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


class _Bell:
    """An event of the running loop that is set by other threads while the block lasts."""

    def __init__(
        self, lock: threading.Lock, waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
    ) -> None:
        self._lock, self._waiting = lock, waiting

    def __enter__(self) -> asyncio.Event:
        self._entry = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.add(self._entry)
        return self._entry[1]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.discard(self._entry)


class Followings:
    """By request. The oldest that ended are forgotten, and none that somebody follows before it ends."""

    def __init__(self) -> None:
        self._by_request: OrderedDict[str, Following] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, request: str) -> Following:
        with self._lock:
            if request not in self._by_request:
                self._by_request[request] = Following()
                self._forget()
            return self._by_request[request]

    def _forget(self) -> None:
        over = len(self._by_request) - _KEPT
        elsewhere = over > _KEPT  # those of other servers end there
        for name in [
            name
            for name, following in self._by_request.items()
            if following.ended or (elsewhere and not following.is_followed)
        ][: max(0, over)]:
            del self._by_request[name]
