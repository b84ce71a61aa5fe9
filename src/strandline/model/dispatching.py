"""What a server's dispatcher is doing, and what it puts off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Something that failed is not tried again before a time. Each failure in a row doubles the pause."""

    failures: int
    until: datetime
    error: str
    slug: str = ""

    @classmethod
    def after(cls, earlier: "Pause | None", now: datetime, error: str, slug: str = "") -> "Pause":
        failures = earlier.failures + 1 if earlier else 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 20), LONGEST_PAUSE)
        return cls(failures=failures, until=now + pause, error=error, slug=slug)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherState:
    """As `status` and the health checks of a server show it."""

    dispatching: bool
    doing: str = ""
    """The verb or `run` that is being done now."""
    request: str = ""
    """The id of the request that is being done, if it is one."""
    since: datetime | None = None
    paused: Mapping[str, Pause] = field(default_factory=dict)
    """By node that fails: when it is tried again."""
    trouble: Pause | None = None
    """Why no run could be done at all, such as a lake that cannot be reached."""
