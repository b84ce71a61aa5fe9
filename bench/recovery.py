"""What a kill costs the next run: the second day of property_tax, killed after a write and run again.

Each run has its own process. `python -m bench.recovery PROJECT` is that process: it starts Spark, runs, and
prints its measurements as one line of JSON.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.dispatch import failpoints, holding
from strandline.spark.session import get_session

from .engine import SILENT
from .example import copy_example, generate_day
from .progress import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A run in a new process."""

    killed_after: int
    """After which write of the same day the previous process was killed; 0 if it was not."""
    spark_seconds: float
    """Seconds until Spark had started. They are not part of `seconds`."""
    seconds: float
    taking_seconds: float
    """Part of `seconds` in which some thread was taking a lease, fencing or settling.

    Settling records what the killed process had committed.
    """
    fenced: int
    writes: int


@dataclass
class Occupied:
    """Measures how long at least one thread was in a function."""

    seconds: float = 0.0
    _inside: int = 0
    _since: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            self._step(1)
            try:
                return function(*given, **named)
            finally:
                self._step(-1)

        return timed

    def _step(self, by: int) -> None:
        with self._lock:
            now = time.perf_counter()
            self.seconds += now - self._since if self._inside else 0.0
            self._inside, self._since = self._inside + by, now


def measure_recovery(folder: Path) -> list[Again]:
    """Run the second day undisturbed, then after a kill behind its first, a middle and its last write."""
    project = copy_example(folder / "recovery")
    generate_day(project, 1)
    say("the example's first day, then its second undisturbed")
    _run(project)
    generate_day(project, 2)
    found = [_measure_copy(project, 0)]
    writes = found[0].writes
    for nth in (1, (writes + 1) // 2, writes):
        say(f"killed behind write {nth} of {writes}, and run again")
        found.append(_measure_copy(project, nth))
    return found


def _measure_copy(project: Path, killed_after: int) -> Again:
    copy = Path(shutil.copytree(project, project.with_name(f"recovery_{killed_after}")))
    if killed_after:
        killed = _start(copy, f"after-write#{killed_after}=kill")
        if killed.returncode != -signal.SIGKILL:
            raise RuntimeError(f"it was not killed: {killed.stderr}")
    measured = _run(copy)
    return Again(killed_after=killed_after, **measured)


def _run(project: Path) -> dict[str, Any]:
    ended = _start(project)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    measured: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return measured


def _start(project: Path, fail: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.recovery", str(project)]
    return subprocess.run(
        command,
        env={**os.environ, "STRANDLINE_FAILPOINTS": fail},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def _tell(project: Path) -> None:
    taking = Occupied()
    with open_workspace(project) as workspace:
        began = time.perf_counter()
        get_session(workspace.project.settings)
        ready = time.perf_counter()
        with patch.object(holding, "_take", taking.around(holding._take)):
            outcome = run(workspace, RunRequest(), SILENT)
        ended = time.perf_counter()
    if outcome.exit_code:
        raise RuntimeError("\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results))
    fenced = sum("fenced off" in note for r in outcome.results for note in r.notes)
    measured = Again(
        killed_after=0,
        spark_seconds=ready - began,
        seconds=ended - ready,
        taking_seconds=taking.seconds,
        fenced=fenced,
        writes=failpoints.hits["after-write"],
    )
    print(json.dumps({name: value for name, value in asdict(measured).items() if name != "killed_after"}))


if __name__ == "__main__":
    _tell(Path(sys.argv[1]))
