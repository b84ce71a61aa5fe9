"""How often one caller may call: a bucket that fills again at a steady rate."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from .refused import RefusedError

CALLS_A_SECOND, CALLS_AT_ONCE = 1_000.0, 5_000.0
"""Of one access key."""
REFUSALS_A_SECOND, REFUSALS_AT_ONCE = 5.0, 50.0
"""Calls of one address without a valid key."""
_REMEMBERED = 10_000
"""Callers. Who has not called for longest is forgotten first."""


@dataclass(slots=True, kw_only=True)
class Rate:
    """Counts the calls of each caller. Only the event loop uses it."""

    a_second: float
    at_once: float
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """By caller: what is left in the bucket, and when that was."""

    def count(self, caller: str, now: float) -> None:
        """Count one call. Raises RefusedError if there were too many. `now` only has to grow."""
        left, since = self._left.pop(caller, (self.at_once, now))
        left = min(self.at_once, left + (now - since) * self.a_second)
        self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        while len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
        if left < 1:
            pause = math.ceil((1 - left) / self.a_second)
            raise RefusedError(
                f"There are too many calls: more than {self.a_second:.0f} a second.",
                remedy=f"Call again in {pause} s, or send more with each call.",
                slug="too-many-calls",
                status=429,
                headers={"retry-after": str(pause)},
            )
