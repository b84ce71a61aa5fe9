"""What safety costs: time spent in failpoints and in confirming commits, in runs of property_tax."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.dispatch import failpoints, holding

from .engine import SILENT
from .example import copy_example, generate_day
from .progress import say

DAYS = (1, 2, 3)
WARM_UP = 1
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Totals over the runs of all days.

    Time that several threads spend at once counts for each of them, so a share is rather too large.
    """

    seconds: float
    reach_seconds: float
    reached: int
    """How often a failpoint was passed."""
    confirm_seconds: float
    confirmed: int

    @property
    def percent(self) -> float:
        return 100 * (self.reach_seconds + self.confirm_seconds) / self.seconds


@dataclass
class Stopwatch:
    """The time spent in functions, over all threads."""

    seconds: float = 0.0
    calls: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                answer = function(*given, **named)
                return list(answer) if isinstance(answer, Iterator) else answer
            finally:
                with self._lock:
                    self.seconds += time.perf_counter() - began
                    self.calls += 1

        return timed


def measure_overhead(folder: Path) -> list[Overhead]:
    """Play the example's days several times, each in a folder of its own; the first time warms up."""
    say("the example's days, with failpoints and confirming timed")
    found = []
    for nth in range(WARM_UP + ROUNDS):
        found.append(_play(folder / f"overhead_{nth}"))
        say(f"  {found[-1].seconds:.1f} s: {found[-1].percent:.2f} %")
    return found[WARM_UP:]


def _play(folder: Path) -> Overhead:
    project = copy_example(folder)
    seconds = 0.0
    with _timed() as (reaching, confirming, commits):
        for day in DAYS:
            generate_day(project, day)
            began = time.perf_counter()
            with open_workspace(project) as workspace:
                outcome = run(workspace, RunRequest(), SILENT)
            seconds += time.perf_counter() - began
            if outcome.exit_code or not outcome.results:
                raise RuntimeError("\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results))
    return Overhead(
        seconds=seconds,
        reach_seconds=reaching.seconds,
        reached=reaching.calls,
        confirm_seconds=confirming.seconds + commits.seconds,
        confirmed=commits.calls,
    )


@contextmanager
def _timed() -> Iterator[tuple[Stopwatch, Stopwatch, Stopwatch]]:
    """Measure `reach`, and what `Held.write` does after the write, while the context is open.

    Confirming looks for each commit once.
    """
    reaching, confirming, commits = Stopwatch(), Stopwatch(), Stopwatch()
    callers = [
        m
        for name, m in list(sys.modules.items())
        if name.startswith("strandline.") and vars(m).get("reach") is failpoints.reach
    ]
    with ExitStack() as patched:
        timed = reaching.around(failpoints.reach)
        for module in callers:
            patched.enter_context(patch.object(module, "reach", timed))
        for name, watch in (
            ("read_entries", confirming),
            ("foreign_versions", confirming),
            ("find_ours", commits),
        ):
            patched.enter_context(patch.object(holding, name, watch.around(getattr(holding, name))))
        yield reaching, confirming, commits
