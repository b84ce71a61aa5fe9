"""Sends the deliveries that are due: claims them, tries each once, records what came of it.

Any number of processes may do this at once: a delivery belongs to one claim at a time.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime

from strandline.catalog import Catalog, claim_deliveries, record_outcomes, release_claims
from strandline.model.deliveries import Attempt, Claim, Outcome, find_pause
from strandline.model.endpoints import Endpoint, read_headers, read_secrets
from strandline.model.errors import StrandlineError
from strandline.publish.webhooks import WebhookSender

from .failpoints import reach

_MARGIN_SECONDS = 30.0
"""A claim outlives the timeout of its attempt by this, so that its outcome can be recorded."""
MakeSender = Callable[[Endpoint], WebhookSender]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The clock of the senders. Tests bring their own."""

    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(slots=True, kw_only=True)
class Sent:
    """What was done, by endpoint and by what came of it: `delivered`, `failed`, `dead` or `lost`."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def total(self, word: str) -> int:
        return sum(count for (_, what), count in self.counts.items() if what == word)


async def send_due(
    catalog: Catalog, endpoints: Mapping[str, Endpoint], holder: str, make_sender: MakeSender, pace: Pace
) -> Sent:
    """Send until nothing is due any more. An endpoint that is slow holds up no other."""
    sent = Sent()
    async with AsyncExitStack() as stack:
        senders = {
            name: await stack.enter_async_context(make_sender(endpoint))
            for name, endpoint in endpoints.items()
        }
        ends = await asyncio.gather(
            *(
                _Lane(catalog, endpoint, senders[name], holder, pace, sent).run()
                for name, endpoint in endpoints.items()
            ),
            return_exceptions=True,  # every lane ends before the connections are closed
        )
    for end in ends:
        if end is not None:
            raise end
    return sent


def find_sendable(
    endpoints: Mapping[str, Endpoint], environ: Mapping[str, str]
) -> tuple[dict[str, Endpoint], tuple[StrandlineError, ...]]:
    """The endpoints whose secrets and headers can be read, and why those of others cannot."""
    sendable, refused = {}, list[StrandlineError]()
    for name, endpoint in endpoints.items():
        try:
            make_sender(endpoint, environ)
            sendable[name] = endpoint
        except StrandlineError as error:
            refused.append(error)
    return sendable, tuple(refused)


def make_sender(endpoint: Endpoint, environ: Mapping[str, str]) -> WebhookSender:
    """A sender with the secrets of the environment."""
    return WebhookSender(endpoint, read_secrets(endpoint, environ), read_headers(endpoint, environ))


class _Lane:
    """The attempts at one endpoint: at most `in_flight` at once, at most `rate` a second."""

    def __init__(
        self, catalog: Catalog, endpoint: Endpoint, sender: WebhookSender, holder: str, pace: Pace, sent: Sent
    ) -> None:
        self._catalog = catalog
        self._endpoint = endpoint
        self._sender = sender
        self._holder = holder
        self._pace = pace
        self._sent = sent
        self._under_way: dict[asyncio.Task[Outcome], Claim] = {}
        self._next_at = 0.0

    async def run(self) -> None:
        try:
            while await self._start() or self._under_way:
                done, _ = await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
                await self._record([(self._under_way[task], task.result()) for task in done])
                for task in done:
                    del self._under_way[task]
        finally:
            await self._stop()

    async def _start(self) -> bool:
        """Claim what is due, as far as there is room, and start its attempts. False if nothing was due."""
        room = self._endpoint.in_flight - len(self._under_way)
        if self._endpoint.rate is not None:
            room = min(room, max(1, int(self._endpoint.rate)))  # no claim waits long for its turn
        if room <= 0:
            return False
        seconds = self._endpoint.timeout.total_seconds() + _MARGIN_SECONDS
        ordering = self._endpoint.ordering
        claims = await asyncio.to_thread(
            claim_deliveries, self._catalog, self._endpoint.name, self._holder, seconds, room, ordering
        )
        for claim in claims:
            self._under_way[asyncio.create_task(self._attempt(claim))] = claim
        return bool(claims)

    async def _attempt(self, claim: Claim) -> Outcome:
        await self._wait_for_turn()
        reach("before-send", self._endpoint.name)
        outcome = await self._sender.send(claim.event_id, claim.body, self._pace.now())
        reach("after-send", self._endpoint.name)
        return outcome

    async def _record(self, tried: list[tuple[Claim, Outcome]]) -> None:
        """One transaction for all that ended meanwhile: each costs the disk as much as one."""
        attempts = [
            Attempt(claim=claim, outcome=outcome, pause_seconds=self._find_pause(claim, outcome))
            for claim, outcome in tried
        ]
        kept = await asyncio.to_thread(record_outcomes, self._catalog, self._endpoint.name, attempts)
        for one, is_kept in zip(attempts, kept, strict=True):
            self._sent.counts[self._endpoint.name, _word(one, is_kept)] += 1

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

    async def _stop(self) -> None:
        """End what is under way. What was not recorded is given back."""
        claims = list(self._under_way.values())
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if claims:
            await asyncio.to_thread(release_claims, self._catalog, claims)


def _spread(delivery: str, attempts: int) -> float:
    """Between 0 and 1, and the same for the same attempt: nothing here depends on chance."""
    digest = hashlib.sha256(f"{delivery}:{attempts}".encode()).digest()
    return int.from_bytes(digest[:4]) / (2**32 - 1)


def _word(attempt: Attempt, is_kept: bool) -> str:
    if not is_kept:
        return "lost"
    return "delivered" if attempt.outcome.delivered else "dead" if attempt.pause_seconds is None else "failed"
