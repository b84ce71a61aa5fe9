"""Requests: work that somebody asked a server for. Each is a row of the catalog and is executed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RequestStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (RequestStatus.DONE, RequestStatus.FAILED)


COMMAND_LINE = "command line"
"""The actor of what somebody asked for at a terminal of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    request: str
    """Its id. Ids of one server sort by time."""
    verb: str
    """A key of `app.work.WORK`."""
    arguments: object
    """The request value of the verb, as `model.wire` writes it."""
    actor: str
    """The name of the access key, `loopback`, or `command line`."""
    status: RequestStatus
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: object = None
    """The outcome of the verb, as `model.wire` writes it. None until it is over, or if it failed."""
    error: Mapping[str, object] | None = None
    """Of one that failed: `slug`, `message`, `remedy` and `exit_code`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClaim:
    """A request that one server executes until the claim runs out. Its token goes into every later write."""

    record: RequestRecord
    token: int
    """How often it has been claimed. More than once if a server died while it executed the request."""
