"""Small increments in a new process and in a warm one, beside a script that only makes their commits.

`python -m bench.small_runs PROJECT [COMMAND]...` is the process that runs. COMMANDs write what arrives before
each run; the first run is the cold one. It prints its measurements as a line of JSON for each run.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from strandline.app.init import init
from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace

from .engine import SILENT
from .example import copy_example
from .floor import Floor
from .measure import count_cpu_seconds
from .progress import say
from .steps import Place, Step, find_last, step_lines, watch_steps
from .target import Target

WARM_UP = 6
"""Lines before a process counts as warm."""
_WRITE_LINE = """\
import json, pathlib, sys
order = {"orderId": f"N-{sys.argv[1]}", "customer": "Chen", "amount": 5, "status": "PLACED"}
line = json.dumps({**order, "changedAt": "2024-02-01T00:00:00Z"})
pathlib.Path(f"data/orders/{sys.argv[1]}.jsonl").write_text(line + "\\n")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRun:
    seconds: float
    cpu_seconds: float
    nodes: int
    """Tasks of the run."""
    commits: int
    steps: Mapping[str, Step] = field(default_factory=dict)
    """By `node/step`."""

    def by_place(self) -> dict[Place, Step]:
        places = (name.rpartition("/") for name in self.steps)
        return {(node, step): self.steps[f"{node}/{step}"] for node, _, step in places}

    @property
    def total(self) -> Step:
        total = Step()
        for step in self.steps.values():
            total.add(step)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRuns:
    """The runs of one project."""

    what: str
    cold: SmallRun
    floor: Floor
    warm: SmallRun


def measure_small_runs(folder: Path) -> list[SmallRuns]:
    """One line into the project of `init`, and days of property_tax."""
    orders = folder / "small" / "orders"
    init(orders)
    lines = [str(nth) for nth in range(1, 3 + WARM_UP)]
    return [
        _measure("one line into the project of `init`", orders, ("-c", _WRITE_LINE), lines),
        _measure(
            "a day of property_tax", copy_example(folder / "small" / "tax"), ("generate.py",), ["1", "2", "3"]
        ),
    ]


def _measure(what: str, project: Path, arrives: tuple[str, ...], days: list[str]) -> SmallRuns:
    """The second day in a new process, and the last one in a process that has played all before it."""
    say(f"{what}: all days in one process, then the second in a new one, and its commits alone")
    other = Path(shutil.copytree(project, project.with_name(f"{project.name}_warm")))
    warm = _run(other, [(*arrives, day) for day in days])[-1]
    _run(project, [(*arrives, days[0])])
    lake = project / ".strandline" / "lake"
    before = Path(shutil.copytree(lake, project.with_name(f"{project.name}_lake")))
    (cold,) = _run(project, [(*arrives, days[1])])
    floor = Floor(**json.loads(_start("bench.floor", str(before), str(lake)).stdout.splitlines()[-1]))
    say(f"  cold {cold.seconds:.1f} s, floor {floor.seconds:.1f} s, warm {warm.seconds:.1f} s")
    return SmallRuns(what=what, cold=cold, floor=floor, warm=warm)


def small_lines(found: list[SmallRuns]) -> Iterator[str]:
    for runs in found:
        yield f"\n{runs.what}: {runs.cold.nodes} tasks, {runs.floor.commits} commits"
        yield (
            f"  a script that makes these commits, new process {runs.floor.seconds:8.2f} s"
            f"  (cpu {runs.floor.cpu_seconds:.1f}, Spark's start {runs.floor.spark_seconds:.1f}),"
            f" {runs.floor.jobs} Spark jobs"
        )
        for name, one in (("new process", runs.cold), ("warm process", runs.warm)):
            total = one.total
            yield (
                f"  run, {name:<40}{one.seconds:8.2f} s  (cpu {one.cpu_seconds:.1f}),"
                f" {total.jobs} Spark jobs, {total.plans} plans, {total.calls} calls to the JVM"
            )
        for name, one in (("new process", runs.cold), ("warm process", runs.warm)):
            yield f"  where the time goes, {name}:"
            yield from step_lines(one.by_place(), by_node=one.nodes <= 8)


def small_targets(found: list[SmallRuns]) -> Iterator[Target]:
    orders, tax = found
    yield Target(
        text=f"{orders.what}, new process: time over that of the commits alone",
        value=orders.cold.seconds / orders.floor.seconds,
        bound=2,
        at_least=False,
    )
    yield Target(
        text=f"{tax.what}, new process",
        value=tax.cold.seconds,
        bound=20,
        at_least=False,
        unit=" s",
        note=f"its commits alone take {tax.floor.seconds:.1f} s",
    )
    yield Target(text=f"{tax.what}, warm process", value=tax.warm.seconds, bound=6, at_least=False, unit=" s")


def _run(project: Path, arrivals: list[tuple[str, ...]]) -> list[SmallRun]:
    ended = _start("bench.small_runs", str(project), *(json.dumps(words) for words in arrivals))
    runs = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return [
        SmallRun(**{**one, "steps": {name: Step(**step) for name, step in one["steps"].items()}})
        for one in runs
    ]


def _start(module: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", module, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return ended


def main(words: list[str]) -> None:
    project = Path(words[0])
    started, cpu_before = time.monotonic(), 0.0
    for arrival in words[1:]:
        command = [sys.executable, *json.loads(arrival)]
        subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
        print(json.dumps(_measure_run(project, started, cpu_before)), flush=True)
        started, cpu_before = time.monotonic(), count_cpu_seconds()


def _measure_run(project: Path, started: float, cpu_before: float) -> dict[str, Any]:
    session = SparkSession.getActiveSession()
    last = find_last(session)
    with watch_steps() as steps, open_workspace(project) as workspace:
        outcome = run(workspace, RunRequest(), SILENT)
    seconds, cpu_seconds = time.monotonic() - started, count_cpu_seconds() - cpu_before
    if outcome.exit_code or not outcome.results:
        raise RuntimeError("\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results))
    session = SparkSession.getActiveSession()
    assert session is not None
    time.sleep(0.5)  # Spark's own record of its jobs is a little behind
    steps.add_jobs(session, last)
    measured = SmallRun(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        nodes=len(outcome.results),
        commits=sum(result.table_version is not None for result in outcome.results),
        steps={f"{node}/{step}": found for (node, step), found in steps.by_place.items()},
    )
    return asdict(measured)


if __name__ == "__main__":
    main(sys.argv[1:])
