"""The changes of one dataset as they come, for all who listen to it in this process.

A subscription begins with rows, or at a cursor. It then reads the log by itself until it has read all that
was told to the others. From then on it is a member of a group, and gets each change with the others.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from strandline.app.changes import (
    ChangesReplacedError,
    FollowedLog,
    Grown,
    PublishedChange,
    RowFilter,
    expired,
)
from strandline.app.reading import Readable
from strandline.app.rows import read_state
from strandline.app.serving import as_told
from strandline.model.errors import StrandlineError
from strandline.model.publishing import RowKey

from .group import Group, Member, Wanted
from .outbox import Outbox, Ticket

SUBSCRIBERS, MESSAGES, SLOW = "subscribers", "subscription_messages_total", "slow_subscribers_total"
"""Metrics."""
MOST_SNAPSHOT_ROWS = 100_000
_REMEMBERED, _LETTERS_REMEMBERED = 1_000, 4 << 20
"""Changes that are kept, and their length, so that a subscription that begins need not read the log."""
_SLICE = 50
"""Changes that are told before the readers get a turn."""
_PATIENCE = 1.0
"""Seconds for which a change waits for readers that are half full."""
_READERS = 2
"""States of tables that are read at once."""


@dataclass(slots=True, eq=False)
class _State:
    """Rows at one version as messages, for all who begin there."""

    texts: asyncio.Task[list[str]]
    users: int = 0


Count = Callable[[str, str, int], None]
"""Counts for metrics: the name of the metric, the dataset, and by how much."""


class Feed:
    """Used by one event loop alone. The log is read in threads."""

    def __init__(self, log: FollowedLog, key: RowKey, count: Count) -> None:
        self.log = log
        self.name = log.name
        self.ended = False
        """Nothing more will be told."""
        self.began_anew = False
        """That is why it ended: cursors have expired. Otherwise readers may resume."""
        self.failure: StrandlineError | None = None
        """That is why it ended: the log cannot be read at the moment."""
        self._key = key
        self._count = count
        self._complete = self._told = self._remembered_from = str(log.end)
        self._remembered: deque[PublishedChange] = deque()
        self._letters = 0
        self._crowded = False
        """Somebody who reads is half full."""
        self._groups: dict[Hashable, Group] = {}
        self._states: dict[tuple[Group, str], _State] = {}
        self._readers = asyncio.Semaphore(_READERS)
        self._growing = asyncio.Lock()
        self._progress = asyncio.Event()
        self._closers: set[Callable[[], None]] = set()
        self.listeners = 0

    @property
    def stopped(self) -> bool:
        """It ended because the server ends: all of the log can still be read."""
        return self.ended and not self.began_anew and self.failure is None

    async def grow(self) -> None:
        """Read what came, and tell it to all who listen. Ends the feed if the log began anew.

        Raises StrandlineError if the log cannot be read, and ends the feed too: a part of a commit may have
        been told, and must not be told again. Readers resume after their cursors when the log can be read.
        """
        async with self._growing:
            try:
                if self.ended or not await asyncio.to_thread(self.log.has_grown):
                    return
                parts = self.log.grow()
                while (part := await asyncio.to_thread(next, parts, None)) is not None:
                    await self._tell(part)
            except ChangesReplacedError:
                self.began_anew = True
                self.end()
            except Exception as error:
                self.failure = as_told(error)
                self.end()
                raise self.failure from error

    def end(self) -> None:
        """Close all who listen. They may resume, unless the log began anew."""
        self.ended = True
        self._progress.set()
        for close in list(self._closers):
            close()

    def news(self) -> asyncio.Event:
        """It is set when something more has been told, or the feed has ended."""
        return self._progress

    async def wait_for(self, news: asyncio.Event, seconds: float) -> bool:
        """Whether it came before the time was up."""
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            return False
        return True

    async def subscribe(
        self, workspace: Readable, wanted: Wanted, outbox: Outbox, ticket: Ticket, close: Callable[[], None]
    ) -> None:
        """Send rows and changes until it is cancelled. `close` is called when the feed ends.

        Raises CallError if the subscription is not possible.
        """
        row_filter = await asyncio.to_thread(self.log.make_filter, wanted.where)
        with self.listening(), self._using(wanted, row_filter) as group, self._closing(close):
            self._count(SUBSCRIBERS, self.name, 1)
            try:
                cursor = await self._begin(workspace, wanted, group, outbox, ticket)
                member = await self._catch_up(cursor, group, outbox, ticket)
                try:
                    await asyncio.Event().wait()
                finally:
                    group.members.discard(member)
            finally:
                ticket.ended = True
                self._count(SUBSCRIBERS, self.name, -1)

    async def _begin(
        self, workspace: Readable, wanted: Wanted, group: Group, outbox: Outbox, ticket: Ticket
    ) -> str:
        """The cursor after which changes begin, once the rows have been sent."""
        if wanted.after is not None:
            if self.log.is_ahead(wanted.after):
                await self.grow()
            return str(self.log.parse_cursor(wanted.after))
        if not wanted.snapshot:
            return self._told
        begin = self._complete
        with self._sharing(workspace, group, begin) as state:
            for text in await asyncio.shield(state.texts):
                await outbox.put(ticket, text)
                self._count(MESSAGES, self.name, 1)
        return begin

    async def _catch_up(self, cursor: str, group: Group, outbox: Outbox, ticket: Ticket) -> Member:
        """Send what was told since, then become a member of the group: between the two is no turn."""
        member = Member(ticket, outbox)
        while True:
            progress = self._progress
            if cursor > self._told:  # it read the log faster than the others were told
                await progress.wait()
            elif cursor < self._remembered_from:
                before, cursor = cursor, await self._read_log(cursor, group, outbox, ticket)
                if cursor == before:
                    await progress.wait()
            else:
                missing = [change for change in self._remembered if change.cursor > cursor]
                if not missing:
                    group.members.add(member)
                    return member
                for change in missing[:_SLICE]:
                    if (text := group.encode_change(change)) is not None:
                        await outbox.put(ticket, text)
                        self._count(MESSAGES, self.name, 1)
                    cursor = change.cursor
            if self.began_anew:
                raise expired(self.name)
            if self.ended:
                await asyncio.Event().wait()  # until the connection is closed: its reader may resume

    async def _read_log(self, cursor: str, group: Group, outbox: Outbox, ticket: Ticket) -> str:
        """Send what the log has after a cursor. Returns the cursor after that."""
        end, begin = str(self.log.end), self.log.parse_cursor(cursor)
        parts = self.log.read_after(begin)
        try:
            while (changes := await asyncio.to_thread(next, parts, None)) is not None:
                for change in changes:
                    if (text := group.encode_change(change)) is not None:
                        await outbox.put(ticket, text)
                        self._count(MESSAGES, self.name, 1)
                    cursor = change.cursor
        except ChangesReplacedError as error:
            raise expired(self.name) from error
        return max(cursor, end)

    async def _tell(self, part: Grown) -> None:
        """Tell changes to all groups. Between slices, and once they are half full, those who read get a turn.

        A connection may have a hundred subscriptions, and gets each change as often.
        """
        for nth, change in enumerate(part.changes, 1):
            for group in self._groups.values():
                if group.members and (text := group.encode_change(change)) is not None:
                    self._count(MESSAGES, self.name, sum([self._push(m, text) for m in group.members]))
            self._told = change.cursor
            self._remember(change)
            if nth % _SLICE == 0 or self._crowded:
                await self._give_a_turn()
        self._told = part.cursor
        if part.complete:
            self._complete = part.cursor
        self._progress.set()
        self._progress = asyncio.Event()
        await self._give_a_turn()

    def _remember(self, change: PublishedChange) -> None:
        self._remembered.append(change)
        self._letters += change.letters
        while len(self._remembered) > _REMEMBERED or self._letters > _LETTERS_REMEMBERED:
            forgotten = self._remembered.popleft()
            self._letters -= forgotten.letters
            self._remembered_from = forgotten.cursor

    async def _give_a_turn(self) -> None:
        """Wait for those who are half full and still read."""
        self._crowded = False
        await asyncio.sleep(0)
        outboxes = {member.outbox for group in self._groups.values() for member in group.members}
        slow = [one for one in outboxes if one.is_half_full and not one.stalled]
        if not slow:
            return
        waits = [asyncio.ensure_future(one.wait_for_room()) for one in slow]
        await asyncio.wait(waits, timeout=_PATIENCE)
        for one, wait in zip(slow, waits, strict=True):
            one.stalled = not wait.done()
            wait.cancel()

    def _push(self, member: Member, text: str) -> bool:
        was_full = member.outbox.full
        taken = member.outbox.push(member.ticket, text)
        if member.outbox.is_half_full and not member.outbox.stalled:
            self._crowded = True
        if not taken and not was_full:
            self._count(SLOW, self.name, 1)
        return taken

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While somebody listens, the log is followed."""
        self.listeners += 1
        try:
            yield
        finally:
            self.listeners -= 1

    @contextmanager
    def _closing(self, close: Callable[[], None]) -> Iterator[None]:
        closer = partial(close)  # one for each subscription, also of one connection
        self._closers.add(closer)
        try:
            yield
        finally:
            self._closers.discard(closer)

    @contextmanager
    def _using(self, wanted: Wanted, row_filter: RowFilter) -> Iterator[Group]:
        group = self._groups.get(wanted.same)
        if group is None:
            group = self._groups[wanted.same] = Group(row_filter=row_filter, encode=wanted.encode)
        group.users += 1
        try:
            yield group
        finally:
            group.users -= 1
            if not group.users and self._groups.get(wanted.same) is group:
                del self._groups[wanted.same]

    @contextmanager
    def _sharing(self, workspace: Readable, group: Group, begin: str) -> Iterator[_State]:
        place = (group, begin)
        state = self._states.get(place)
        if state is None:
            task = asyncio.ensure_future(self._read_state(workspace, group, begin))
            state = self._states[place] = _State(task)
        state.users += 1
        try:
            yield state
        finally:
            state.users -= 1
            if not state.users:
                self._states.pop(place, None)
                state.texts.cancel()

    async def _read_state(self, workspace: Readable, group: Group, begin: str) -> list[str]:
        version, key = self.log.parse_cursor(begin).version, self._key.columns

        def read() -> list[str]:
            texts, last = list[str](), None
            where = group.row_filter.condition
            for part in read_state(workspace, self.name, version, where, key, MOST_SNAPSHOT_ROWS):
                for stored in part:
                    if last is not None:
                        texts.append(group.encode_row(last, None))
                    last = stored
            if last is not None:
                texts.append(group.encode_row(last, begin))
            return texts

        async with self._readers:
            return await asyncio.to_thread(read)
