"""The attempts at one endpoint, from claim to record: at most `in_flight` at once, at most `rate` a second.

Claims and records are transactions, and each costs as much as several attempts. So more is claimed at once
than may be under way, as long as nothing fails, and outcomes are recorded while further attempts are made.
After a failure what was not tried is given back.
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from strandline.catalog import Catalog, claim_deliveries, record_outcomes, release_claims
from strandline.model.deliveries import Attempt, Claim, Outcome, find_pause
from strandline.model.endpoints import Endpoint
from strandline.publish.webhooks import WebhookSender

from .failpoints import reach

_MARGIN_SECONDS = 30.0
"""A claim outlives the timeout of its attempt by this, so that it may wait, and its outcome be recorded."""
_AHEAD = 8
"""At most this many claims for each attempt that may be under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The clock of the senders. Tests bring their own."""

    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(slots=True, kw_only=True)
class Sent:
    """What was done, by endpoint and by what came of it: `delivered`, `failed`, `dead` or `lost`."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: list[tuple[str, float]] = field(default_factory=list)
    """By endpoint: how long each attempt took."""

    def total(self, word: str) -> int:
        return sum(count for (_, what), count in self.counts.items() if what == word)


class Lane:
    """Until it is recorded, a claim waits, is under way, was tried, or is being recorded."""

    def __init__(
        self, catalog: Catalog, endpoint: Endpoint, sender: WebhookSender, holder: str, pace: Pace, sent: Sent
    ) -> None:
        self._catalog = catalog
        self._endpoint = endpoint
        self._sender = sender
        self._holder = holder
        self._pace = pace
        self._sent = sent
        self._waiting: deque[tuple[Claim, float]] = deque()
        """Claims, and until when their attempts must begin."""
        self._under_way: dict[asyncio.Task[Outcome], Claim] = {}
        self._tried: list[tuple[Claim, Outcome]] = []
        self._recording: asyncio.Task[None] | None = None
        self._recorded = 0
        """How many are being recorded."""
        self._claiming: asyncio.Task[None] | None = None
        self._may_be_due = True
        """Whether another claim may find something: no, once one found less than it asked for."""
        self._ahead = 1
        self._failures = 0
        self._next_at = 0.0

    async def run(self) -> None:
        """Send until nothing is due any more."""
        try:
            while True:
                self._claim()
                await self._launch()
                self._record()
                busy = [task for task in (self._claiming, self._recording) if task is not None]
                if not busy and not self._under_way:
                    return
                await asyncio.wait([*self._under_way, *busy], return_when=asyncio.FIRST_COMPLETED)
                self._collect()
        finally:
            await self._stop()

    def _claim(self) -> None:
        """Begin to claim, if much less is claimed than may be."""
        most = self._endpoint.in_flight * self._ahead
        if self._endpoint.rate is not None:
            most = min(self._endpoint.in_flight, max(1, int(self._endpoint.rate)))  # none waits long
        claimed = len(self._waiting) + len(self._under_way) + len(self._tried) + self._recorded
        room = most - claimed
        if self._claiming is None and self._may_be_due and (room >= (most + 1) // 2 or not claimed):
            self._claiming = asyncio.create_task(self._take(room))

    async def _take(self, room: int) -> None:
        failures, began = self._failures, asyncio.get_running_loop().time()
        seconds = self._endpoint.timeout.total_seconds() + _MARGIN_SECONDS
        if self._endpoint.rate is not None:
            seconds += 1 / self._endpoint.rate
        ordering = self._endpoint.ordering
        self._may_be_due = False
        claims = await asyncio.to_thread(
            claim_deliveries, self._catalog, self._endpoint.name, self._holder, seconds, room, ordering
        )
        self._may_be_due |= len(claims) == room
        # Whoever waits half the margin still has the other half for its record.
        self._waiting += ((claim, began + _MARGIN_SECONDS / 2) for claim in claims)
        if failures != self._failures and self._ahead > 1:
            await self._give_back()

    async def _launch(self) -> None:
        """Begin attempts at what waits, as many as may be under way."""
        while self._waiting and len(self._under_way) < self._endpoint.in_flight:
            claim, until = self._waiting.popleft()
            if asyncio.get_running_loop().time() > until:
                self._waiting.appendleft((claim, until))
                await self._give_back()
            else:
                self._under_way[asyncio.create_task(self._attempt(claim))] = claim

    async def _attempt(self, claim: Claim) -> Outcome:
        await self._wait_for_turn()
        reach("before-send", self._endpoint.name)
        outcome = await self._sender.send(claim.event_id, claim.body, self._pace.now())
        reach("after-send", self._endpoint.name)
        return outcome

    def _record(self) -> None:
        """Begin to record what was tried: one transaction for all that ended since the last."""
        if self._recording is None and self._tried:
            tried, self._tried = self._tried, []
            self._recorded = len(tried)
            self._recording = asyncio.create_task(self._write(tried))

    async def _write(self, tried: list[tuple[Claim, Outcome]]) -> None:
        attempts = [
            Attempt(claim=claim, outcome=outcome, pause_seconds=self._find_pause(claim, outcome))
            for claim, outcome in tried
        ]
        kept = await asyncio.to_thread(record_outcomes, self._catalog, self._endpoint.name, attempts)
        for one, is_kept in zip(attempts, kept, strict=True):
            self._sent.counts[self._endpoint.name, _word(one, is_kept)] += 1
            self._sent.seconds.append((self._endpoint.name, one.outcome.seconds))
        self._may_be_due = True  # the next of a key is due once the one before it has ended
        if all(outcome.delivered for _, outcome in tried):
            self._ahead = min(2 * self._ahead, _AHEAD)
        else:
            self._ahead, self._failures = 1, self._failures + 1
            await self._give_back()

    def _collect(self) -> None:
        """Take what has ended. What went wrong in a transaction, or was to end this process, is raised."""
        for task in [task for task in self._under_way if task.done()]:
            self._tried.append((self._under_way[task], task.result()))
            del self._under_way[task]
        if self._claiming is not None and self._claiming.done():
            done, self._claiming = self._claiming, None
            done.result()
        if self._recording is not None and self._recording.done():
            done, self._recording, self._recorded = self._recording, None, 0
            done.result()

    def _find_pause(self, claim: Claim, outcome: Outcome) -> float | None:
        if outcome.delivered:
            return None
        attempts = claim.attempts + 1
        pause = find_pause(outcome, attempts, self._endpoint.retry, _spread(claim.id, attempts))
        return pause.total_seconds() if pause is not None else None

    async def _wait_for_turn(self) -> None:
        """Attempts start at even distances. The turn is taken at once, so no two tasks take the same."""
        if self._endpoint.rate is None:
            return
        now = self._pace.now().timestamp()
        turn = max(now, self._next_at)
        self._next_at = turn + 1 / self._endpoint.rate
        if turn > now:
            await self._pace.sleep(turn - now)

    async def _give_back(self) -> None:
        """Give back what was not tried."""
        claims = [claim for claim, _ in self._waiting]
        self._waiting.clear()
        self._may_be_due = True
        if claims:
            await asyncio.to_thread(release_claims, self._catalog, claims)

    async def _stop(self) -> None:
        """End what is under way. What was tried is recorded, the rest is given back."""
        for task in self._under_way:
            task.cancel()
        transactions: list[asyncio.Task[Any]] = [t for t in (self._claiming, self._recording) if t]
        await asyncio.gather(*self._under_way, *transactions, return_exceptions=True)
        never = asyncio.get_running_loop().time()
        for task, claim in self._under_way.items():
            if task.cancelled() or task.exception() is not None:
                self._waiting.append((claim, never))
            else:
                self._tried.append((claim, task.result()))
        if self._tried:
            await self._write(self._tried)
        await self._give_back()


def _spread(delivery: str, attempts: int) -> float:
    """Between 0 and 1, and the same for the same attempt: nothing here depends on chance."""
    digest = hashlib.sha256(f"{delivery}:{attempts}".encode()).digest()
    return int.from_bytes(digest[:4]) / (2**32 - 1)


def _word(attempt: Attempt, is_kept: bool) -> str:
    if not is_kept:
        return "lost"
    return "delivered" if attempt.outcome.delivered else "dead" if attempt.pause_seconds is None else "failed"
