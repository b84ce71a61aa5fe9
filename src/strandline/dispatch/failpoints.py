"""Named stop points, always compiled in, driven by `STRANDLINE_FAILPOINTS`.

`STRANDLINE_FAILPOINTS="after-write:demand=kill,before-record=raise"` names points, each optionally of one
node, and what happens there:

- `raise` fails the step.
- `kill` ends the process at once.
- `sleep:SECONDS` waits.
- `block:FILE` waits until the file appears.
- `lose` (at `after-write`) loses the answer of a commit that stands.

`after-write:names#3=kill` acts only at the third hit of that point and node since the process began.
`after-write#3=kill` acts only at the third hit of that point for any node.
"""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from threading import Lock

POINTS = (
    "before-lease",
    "after-lease",
    "before-fence",
    "after-fence",
    "before-settle",
    "after-settle",
    "before-pin",
    "after-pin",
    "before-prepare",
    "after-prepare",
    "before-write",
    "after-write",
    "before-confirm",
    "after-confirm",
    "before-record",
    "after-record",
    "before-purge",
    "after-purge",
    "before-compact",
    "after-compact",
    "before-vacuum",
    "after-vacuum",
    "before-rebuild",
    "before-swap",
    "after-swap",
    "before-migrate",
    "after-migrate",
    "before-fill",
    "after-fill",
    "before-send",
    "after-send",
)

hits: Counter[str] = Counter()
"""How often a point was reached, at any node (`after-write`) and at each (`after-write:names`)."""
_lock = Lock()


class FailpointError(Exception):
    """What a failpoint with the action `raise` raises."""


def reach(point: str, node: str) -> None:
    """Called where a process may die. Does nothing unless the environment says so."""
    assert point in POINTS, point
    here = f"{point}:{node}"
    with _lock:
        hits[point] += 1
        hits[here] += 1
        numbers = {point: hits[point], here: hits[here]}
    asked = os.environ.get("STRANDLINE_FAILPOINTS")
    if asked:
        for entry in asked.split(","):
            name, _, action = entry.strip().partition("=")
            name, _, nth = name.partition("#")
            if name.partition(":")[0] not in POINTS:
                raise ValueError(
                    f"STRANDLINE_FAILPOINTS: `{name}` is not a point; there are {', '.join(POINTS)}"
                )
            if name in numbers and (not nth or int(nth) == numbers[name]):
                _act(action, point, node)


def _act(action: str, point: str, node: str) -> None:
    verb, _, argument = action.partition(":")
    match verb:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise FailpointError(f"failpoint {point} of {node}")
        case "lose" if point == "after-write":
            raise ConnectionResetError(f"the answer was lost at failpoint {point} of {node}")
        case "sleep":
            time.sleep(float(argument))
        case "block":
            while not Path(argument).exists():
                time.sleep(0.02)
        case _:
            raise ValueError(
                f"STRANDLINE_FAILPOINTS: `{action}` is not an action; "
                "use kill, raise, sleep:SECONDS, block:FILE or lose"
            )
