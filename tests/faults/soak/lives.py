"""The lives of the working process: started, watched from outside, killed, started again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.served_process import find_jvm

from .driver import EVENTS, LOST_ITS_JVM, STOP

SAMPLE_EVERY = 2.0
PATIENCE = 180.0
"""Seconds that an action may take to end after a request to stop, or after the loss of its JVM."""
ENDS = ("both", "both", "python", "jvm", "asked")
"""How a life ends: the process and its JVM are killed, one of them is, or the process is asked to end.

The last serves for comparison.
"""
LOG = "driver.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A measurement of one process."""

    at: float
    rss: int
    handles: int


@dataclass
class Life:
    """One process from its start to its end."""

    number: int
    process: subprocess.Popen[bytes]
    began: float
    ended_by: str = ""
    ended: float = 0.0
    after: str = ""
    """How the previous life ended."""
    python: list[Sample] = field(default_factory=list)
    jvm: list[Sample] = field(default_factory=list)


class Lives:
    """Starts the process and ends it. `faults` lists failures that no kill explains."""

    def __init__(self, folder: Path, seed: str) -> None:
        self._folder, self._seed = folder, seed
        self._chance = random.Random(f"{seed}/fate")
        self._ends: list[str] = []
        self.all: list[Life] = []
        self.faults: list[str] = []

    def begin(self) -> Life:
        number = len(self.all)
        (self._folder / STOP).unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "tests.faults.soak.driver",
            str(self._folder),
            str(number),
            self._seed,
        ]
        with (self._folder / LOG).open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        life = Life(
            number=number,
            process=process,
            began=time.monotonic(),
            after=self.all[-1].ended_by if self.all else "",
        )
        self.all.append(life)
        return life

    def watch(self, life: Life, until: float) -> bool:
        """Measure it at intervals. False if it ended by itself."""
        while (now := time.monotonic()) < until:
            if (code := life.process.poll()) is not None:
                self.faults.append(f"life {life.number} ended by itself with {code}")
                self._bury(life, "itself")
                return False
            if not life.python or now - life.python[-1].at >= SAMPLE_EVERY:
                _sample(life, now)
            time.sleep(0.2)
        return True

    def end(self, life: Life, how: str | None = None) -> None:
        """End it in one of the ways, each as often as it is listed."""
        if how is None:
            self._ends = self._ends or self._chance.sample(ENDS, len(ENDS))
            how = self._ends.pop()
        jvm = find_jvm(life.process.pid)
        match how:
            case "asked":
                (self._folder / STOP).touch()
                self._wait(life, 0)
            case "jvm" if jvm is not None:
                os.kill(jvm, signal.SIGKILL)
                self._wait(life, LOST_ITS_JVM)
            case "python":
                life.process.kill()
            case _:
                how = "both"
                os.killpg(life.process.pid, signal.SIGKILL)
        self._bury(life, how)

    def kill_all(self) -> None:
        """End every process, whatever happened."""
        for life in self.all:
            if life.process.poll() is None:
                os.killpg(life.process.pid, signal.SIGKILL)
                life.process.wait()

    def _wait(self, life: Life, wanted: int) -> None:
        try:
            code = life.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.faults.append(f"life {life.number} did not end within {PATIENCE:.0f} s")
            os.killpg(life.process.pid, signal.SIGKILL)
            return
        if code not in (wanted, 0):
            self.faults.append(f"life {life.number} ended with {code}, not {wanted}")

    def _bury(self, life: Life, how: str) -> None:
        life.process.wait()
        life.ended_by, life.ended = how, time.monotonic()

    def events(self) -> Iterator[dict[str, Any]]:
        """The finished actions of all lives. A line that a kill cut short does not count."""
        file = self._folder / EVENTS
        for line in file.read_text().splitlines() if file.exists() else ():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _sample(life: Life, now: float) -> None:
    for pid, samples in ((life.process.pid, life.python), (find_jvm(life.process.pid), life.jvm)):
        if pid is None:
            continue
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            handles = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            continue  # ended meanwhile
        samples.append(Sample(at=now, rss=pages * os.sysconf("SC_PAGE_SIZE"), handles=handles))
