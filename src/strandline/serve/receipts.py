"""What has been posted to this server: who posted it, and how long it took until it was published."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from strandline.app.receiving import PostedBy, Receipt, record_poster, still_waits
from strandline.app.run import RunOutcome
from strandline.app.workspace import Workspace
from strandline.model.errors import StrandlineError

from .measures import Measures

_MOST = 10_000
"""Of more posts at once the oldest are not timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    receipt: Receipt
    at: float


class Receipts:
    """The posts that this server has answered and that no run has published yet. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: deque[_Noted] = deque(maxlen=_MOST)
        self._posted: dict[tuple[str, str], PostedBy] = {}
        """By source and actor: what the audit log does not have yet."""

    def note(self, receipt: Receipt, actor: str) -> None:
        with self._lock:
            self._noted.append(_Noted(receipt=receipt, at=time.monotonic()))
        self._add(PostedBy(source=receipt.source, actor=actor, posts=1, messages=receipt.received))

    def record_posters(self, workspace: Workspace) -> None:
        """Write into the audit log who has posted since that was written before."""
        while (posted := self._take()) is not None:
            try:
                record_poster(workspace, posted)
            except StrandlineError:  # the catalog is out of reach for a moment: it is written next time
                self._add(posted)
                return

    def _add(self, more: PostedBy) -> None:
        place = (more.source, more.actor)
        with self._lock:
            known = self._posted.get(place)
            self._posted[place] = more if known is None else known.joined(more)

    def _take(self) -> PostedBy | None:
        with self._lock:
            return self._posted.popitem()[1] if self._posted else None

    def time_published(self, workspace: Workspace, outcome: RunOutcome, measures: Measures) -> None:
        """Time the posts that a run which has just ended has received."""
        ended, received = time.monotonic(), {result.node for result in outcome.results}
        with self._lock:
            noted = list(self._noted)
        over = {
            one for one in noted if one.receipt.source in received and not still_waits(workspace, one.receipt)
        }
        with self._lock:
            self._noted = deque((one for one in self._noted if one not in over), maxlen=_MOST)
        for one in over:
            measures.time("fact_to_publish_seconds", ended - one.at)
