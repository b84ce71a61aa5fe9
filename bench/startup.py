"""Wall time of verbs that do not need Spark, started as users start them, and whether a JVM starts."""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .example import copy_example, generate_day
from .progress import say

COMMAND = Path(sys.executable).parent / "strandline"
TRIES = 3
START_SECONDS = 2.0
VERBS = {
    "run (nothing to do)": ("run",),
    "plan": ("plan",),
    "status": ("status",),
    "query": (
        "query",
        "SELECT tenant_id, count(*) AS defaulters, sum(outstanding) AS outstanding FROM defaulters "
        "GROUP BY tenant_id",
    ),
    "history": ("history", "property", "pb.amritsar", "PB-PT-2024-001"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    seconds: list[float]
    jvm: bool

    @property
    def best(self) -> float:
        return min(self.seconds)


def measure_startup(folder: Path) -> dict[str, Start]:
    """Play the example's first day, then time each verb, the best of three."""
    project = copy_example(folder / "property_tax")
    generate_day(project, 1)
    say("the example's first day")
    subprocess.run([COMMAND, "run"], cwd=project, check=True, capture_output=True)
    found: dict[str, Start] = {}
    for name, words in VERBS.items():
        tries = [time_command(project, words) for _ in range(TRIES)]
        found[name] = Start(seconds=[seconds for seconds, _ in tries], jvm=any(jvm for _, jvm in tries))
        say(f"  {name}: {found[name].best:.2f} s{', and a JVM' if found[name].jvm else ''}")
    return found


def time_command(project: Path, words: tuple[str, ...]) -> tuple[float, bool]:
    """The seconds of a verb, and whether a JVM was started."""
    started = time.monotonic()
    process = subprocess.Popen(
        [COMMAND, *words], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    jvm = False
    # The output of these verbs fits a pipe, so nobody has to read it meanwhile.
    while process.poll() is None:
        jvm = jvm or any(_is_java(pid) for pid in _descendants(process.pid))
        time.sleep(0.01)
    seconds = time.monotonic() - started
    output = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"strandline {' '.join(words)} ended with {process.returncode}:\n{output}")
    return seconds, jvm


def _descendants(pid: int) -> Iterator[int]:
    """All descendants of a process, from /proc. A JVM lives for seconds, so polling finds it."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:
            continue  # ended meanwhile
        for child in children:
            yield child
            yield from _descendants(child)


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    except OSError:
        return False
