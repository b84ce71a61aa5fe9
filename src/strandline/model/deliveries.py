"""Deliveries: messages that are owed to endpoints. Their states, and when a failed one is tried again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

LEAST_AFTER_TIMEOUT = timedelta(seconds=60)
MOST_RETRY_AFTER = timedelta(hours=24)
FAILING_DELIVERIES = 10
"""An endpoint at which this many different deliveries have failed in a row is tried once a minute."""
PROBE_PAUSE = timedelta(minutes=1)
DISABLED_AFTER = timedelta(days=5)
"""An endpoint at which everything has failed for this long is disabled."""
_SPREAD = 0.2
_NEVER_EARLIER = timedelta(days=100 * 366)
"""No event was recorded longer ago than this. A schedule of many long pauses would lead before the year 1."""


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    DEAD = "dead"
    HELD = "held"
    """Its endpoint is disabled."""
    CANCELLED = "cancelled"
    """Its endpoint is no longer declared."""


ENDED = (DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """One event that is owed to one endpoint."""

    event_id: str
    event_type: str
    trigger: str
    endpoint: str
    key: str
    source_timestamp: int
    body: bytes

    @property
    def id(self) -> str:
        return f"{self.event_id}-{self.endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A delivery that one sender may try until the claim runs out. Its token goes into every later write."""

    number: int
    id: str
    event_id: str
    endpoint: str
    key: str
    body: bytes
    attempts: int
    """The attempts so far, since it was recorded or replayed."""
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one attempt came to."""

    delivered: bool
    status_code: int | None = None
    error: str = ""
    seconds: float = 0.0
    timed_out: bool = False
    hopeless: bool = False
    """No further attempt can succeed: the body is too large, or the address may not be reached."""
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a claimed delivery."""

    claim: Claim
    outcome: Outcome
    pause_seconds: float | None = None
    """When to try again. None after a success, or if no attempt is left."""

    @property
    def leaves(self) -> DeliveryStatus:
        if self.outcome.delivered:
            return DeliveryStatus.DELIVERED
        return DeliveryStatus.DEAD if self.pause_seconds is None else DeliveryStatus.PENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """As `deliveries` shows it."""

    id: str
    event_id: str
    event_type: str
    trigger: str
    endpoint: str
    key: str
    source_timestamp: int
    status: DeliveryStatus
    attempts: int
    next_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    status_code: int | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """What the catalog remembers about an endpoint."""

    endpoint: str
    disabled: str = ""
    """Why it is disabled. Empty if it is not."""
    failing: tuple[int, ...] = ()
    """Different deliveries that have failed in a row, at most `FAILING_DELIVERIES`."""
    failing_since: datetime | None = None

    @property
    def is_paused(self) -> bool:
        return len(self.failing) >= FAILING_DELIVERIES


def find_pause(
    outcome: Outcome, attempts: int, retry: tuple[timedelta, ...], chance: float
) -> timedelta | None:
    """How long to wait before the next attempt. None if there is none: the delivery is dead.

    `attempts` counts the failed one. `chance` is between 0 and 1 and spreads attempts by 20 percent, so that
    deliveries that failed together do not come back together.
    """
    if outcome.hopeless or attempts > len(retry):
        return None
    pause = retry[attempts - 1] * (1 + _SPREAD * (2 * chance - 1))
    if outcome.timed_out or outcome.status_code == 429:
        pause = max(pause, LEAST_AFTER_TIMEOUT)
    if outcome.retry_after is not None:
        pause = max(pause, min(outcome.retry_after, MOST_RETRY_AFTER))
    return pause


def find_owed_since(now: datetime, retry: tuple[timedelta, ...]) -> datetime:
    """Events that were recorded from then on may be inside their retry schedule.

    They are owed again if the catalog is lost.
    """
    return now - min(sum(retry, timedelta()) * (1 + _SPREAD), _NEVER_EARLIER)
