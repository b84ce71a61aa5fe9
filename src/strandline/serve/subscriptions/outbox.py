"""The messages that a connection has not sent yet. There are few, so that who does not read costs little."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MOST_MESSAGES = 1_000
MOST_BYTES = 1 << 20
_HALF_MESSAGES, _HALF_BYTES = MOST_MESSAGES // 2, MOST_BYTES // 2


@dataclass(slots=True, eq=False)
class Ticket:
    """One subscription of a connection: what stands around its messages, and whether they are wanted."""

    before: str = ""
    after: str = ""
    ended: bool = False


class Outbox:
    """Used by one event loop alone."""

    def __init__(self, overflow: Callable[[], None]) -> None:
        self._overflow = overflow
        """Called once, when the reader is too far behind."""
        self._messages: deque[tuple[Ticket, str]] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.full = False
        """The reader was too far behind. Nothing is taken any more."""
        self.stalled = False
        """Nobody waits for the reader, because it has stopped reading."""

    @property
    def is_half_full(self) -> bool:
        return len(self._messages) >= _HALF_MESSAGES or self._bytes >= _HALF_BYTES

    def push(self, ticket: Ticket, text: str) -> bool:
        """Add a message that cannot wait. False if the reader is too far behind."""
        if self.full:
            return False
        size = _size(text)
        if self._messages and (len(self._messages) >= MOST_MESSAGES or self._bytes + size > MOST_BYTES):
            self.full = True
            self._messages.clear()
            self._room.set()
            self._overflow()
            return False
        self._add(ticket, text, size)
        return True

    async def put(self, ticket: Ticket, text: str) -> None:
        """Add a message once there is room. It may be any size: nobody is closed who reads on."""
        while not self._room.is_set():  # of those who have waited, the first ones may have filled it again
            await self._room.wait()
        if not self.full:
            self._add(ticket, text, _size(text))

    def _add(self, ticket: Ticket, text: str, size: int) -> None:
        self._messages.append((ticket, text))
        self._bytes += size
        self._filled.set()
        if self.is_half_full:
            self._room.clear()

    async def wait_for_room(self) -> None:
        await self._room.wait()

    async def send_all(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Send messages as they come, until it is cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._messages:
                ticket, text = self._messages.popleft()
                self._bytes -= _size(text)
                if not self.is_half_full:
                    self._room.set()
                if not ticket.ended:
                    await send(f"{ticket.before}{text}{ticket.after}")
                    self.stalled = False


def _size(text: str) -> int:
    """Its bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
