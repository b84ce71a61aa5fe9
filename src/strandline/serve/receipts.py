"""How long posted facts take until they are published."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from strandline.app.receiving import Receipt, still_waits
from strandline.app.run import RunOutcome
from strandline.app.workspace import Workspace

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

    def note(self, receipt: Receipt) -> None:
        with self._lock:
            self._noted.append(_Noted(receipt=receipt, at=time.monotonic()))

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
