"""What happens to a process: a kill, lost answers, another writer in between, a late last write.

All of it happens inside one process. A kill raises `Killed`, which nothing catches. From then on catalog and
table log refuse every change of the dead process.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from strandline.app import invalidate as invalidating
from strandline.app import maintain as maintaining
from strandline.app import planning
from strandline.app import run as running
from strandline.catalog import Catalog
from strandline.dispatch import failpoints
from strandline.lake.work import Write
from strandline.model.leases import Lease

from . import plain_workers, table_log

Happening = Callable[[], object]
START = datetime(2024, 1, 1, 6, tzinfo=UTC)
"""Not near midnight: a day may not begin between the last run and the look whether anything is left."""
LAKE_USERS = (running, invalidating, maintaining)
"""The modules that open the lake."""


class Killed(BaseException):
    """The end of a process."""


class Fate:
    """One at a time; `install` puts it in charge of the engine."""

    sends_late = True
    """Whether a write of a process that was killed can be held back and arrive later."""

    def __init__(self) -> None:
        self.dead = False
        self.meanwhile: Happening | None = None
        """Done at the failpoint whose action is `call`."""
        self.watch: Callable[[str, str], None] = lambda *_: None
        """Done at every hit of a failpoint whose action is `watch`, told point and node."""
        self.holds_back: str | None = None
        """The dataset whose next write the killed process has sent. It arrives when `arrive` is called."""
        self.in_flight: Happening | None = None
        self.clock = START

    def now(self) -> datetime:
        self.clock += timedelta(milliseconds=7)
        return self.clock

    def much_later(self) -> datetime:
        """The time that `maintain` uses: everything written is too old to be kept for its age alone."""
        return datetime.now(UTC) + timedelta(days=1000) + (self.now() - START)

    def act(self, action: str, point: str, node: str) -> None:
        match action:
            case "kill":
                self.die()
            case "watch":
                self.watch(point, node)
            case "call":
                happening, self.meanwhile = self.meanwhile, None
                if happening and not self.dead:
                    happening()
            case _:
                _really_act(action, point, node)

    def die(self) -> None:
        self.dead = True
        raise Killed

    def require_life(self, *_: object) -> None:
        if self.dead:
            raise Killed

    def arrive(self) -> None:
        """The write that was on its way."""
        if self.in_flight is not None:
            send, self.in_flight = self.in_flight, None
            send()

    def commit_write(self, desk: Any, write: Write, lease: Lease, metadata: str) -> None:
        if self.holds_back == lease.dataset:
            self.holds_back = None
            self.in_flight = lambda: _really_write(desk, write, lease, metadata)
            self.die()
        _really_write(desk, write, lease, metadata)

    @contextmanager
    def asked(self, failpoints_: str) -> Iterator[None]:
        """Failpoints for as long as the block lasts."""
        before = os.environ.get("STRANDLINE_FAILPOINTS", "")
        os.environ["STRANDLINE_FAILPOINTS"] = failpoints_
        try:
            yield
        finally:
            os.environ["STRANDLINE_FAILPOINTS"] = before

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Plain workers for Spark's, and this fate for the engine's."""
        patch.setenv("STRANDLINE_FAILPOINTS", "")
        patch.setattr(running, "load_workers", lambda: plain_workers)
        patch.setattr(plain_workers, "commit_write", self.commit_write)
        patch.setattr(failpoints, "_act", self.act)
        patch.setattr(table_log, "between", self.require_life)
        patch.setattr(Catalog, "writing", self._guarded(Catalog.writing))
        for module in LAKE_USERS:
            patch.setattr(module, "open_lake", lambda *_: _no_spark)
        patch.setattr(maintaining, "now", self.much_later)
        for module in (running, invalidating, planning):
            patch.setattr(module, "now", self.now)

    def _guarded(self, writing: Callable[[Catalog], Any]) -> Callable[[Catalog], Any]:
        @contextmanager
        def guarded(catalog: Catalog) -> Iterator[Connection]:
            self.require_life()
            with writing(catalog) as connection:
                yield connection

        return guarded


def soon(point: str, node: str = "", nth: int = 1) -> str:
    """A failpoint's name for its n-th hit from now on."""
    name = f"{point}:{node}" if node else point
    return f"{name}#{failpoints.hits[name] + nth}"


_really_act = failpoints._act
_really_write = plain_workers.commit_write


def _no_spark() -> Any:
    raise AssertionError("Spark was asked for")
