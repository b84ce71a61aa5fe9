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
