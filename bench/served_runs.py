"""A warm server: how long a fact takes to its webhook, and a run that is handed to it from the shell."""

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from aiohttp import web

from strandline.app.init import init
from tests.receiver import receiving_in_thread
from tests.served_process import ServedProcess, serving

from .progress import say
from .served_project import ENVIRON, trade, trade_lines, write_project

ROWS, WARM_UP, FACTS = 20_000, 15, 21
WARM_LINES, LINES = 8, 5
_POLL = "settings: {serve: {poll: 1 hour}}\n"
"""The server takes no file by itself before the run that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTimes:
    """Seconds of one fact, from before it is posted until its webhook has come."""

    total: float
    answered: float
    """Until the post was answered."""
    begun: float
    """From the answer until the run began."""
    by_node: dict[str, float]
    rest: float
    """Of the run, beside its tasks: the plan, what is recorded, what is owed."""
    sent: float
    """From the end of the run until the webhook came. Below 0: it came before the run had ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRuns:
    facts: tuple[FactTimes, ...]
    cold_seconds: float
    """`strandline run` for one line into the project of `init`, without a server."""
    handed_seconds: tuple[float, ...]
    """The same beside a warm server, from the shell."""

    @property
    def median(self) -> float:
        return statistics.median(fact.total for fact in self.facts)

    @property
    def handed(self) -> float:
        return statistics.median(self.handed_seconds)


def measure_served_runs(folder: Path) -> ServedRuns:
    say(f"a warm server with {ROWS:,} rows: from a fact to its webhook")
    facts = _measure_facts(folder / "facts")
    say("one line into the project of `init`: alone, and handed to a warm server")
    cold, handed = _measure_handed(folder / "handed")
    return ServedRuns(facts=tuple(facts), cold_seconds=cold, handed_seconds=tuple(handed))


def _measure_facts(folder: Path) -> list[FactTimes]:
    came: dict[str, float] = {}

    async def accept(_: web.Request, body: bytes) -> web.StreamResponse:
        came[str(json.loads(body)["data"]["trade_id"])] = time.time()
        return web.Response(status=204)

    with receiving_in_thread(accept) as receiver:
        write_project(folder, receiver.port)
        with serving(folder, environ=ENVIRON) as server:
            server.wait_until_ready()
            lines = {"content-type": "application/x-ndjson"}
            first = server.call("/v1/facts/pushed?wait=300", trade_lines(0, ROWS), lines)
            assert first.status == 200, first.body
            times = [_time_fact(server, number, came) for number in range(WARM_UP + FACTS)]
    return times[WARM_UP:]


def _time_fact(server: ServedProcess, number: int, came: dict[str, float]) -> FactTimes:
    began = time.time()
    answer = server.call("/v1/facts/pushed", trade(number, 20_000 + number, number + 1))
    answered = time.time()
    assert answer.status == 202, answer.body
    server.wait_for(lambda: str(number) in came, 120, "the webhook does not come")
    server.wait_for(lambda: _last_run(server)["ended_at"] is not None, 60, "the run does not end")
    run = server.call(f"/v1/runs/{_last_run(server)['run']}").document
    started, ended = _seconds(run["started_at"]), _seconds(run["ended_at"])
    by_node = {task["node"]: float(task["seconds"]) for task in run["tasks"]}
    return FactTimes(
        total=came[str(number)] - began,
        answered=answered - began,
        begun=started - answered,
        by_node=by_node,
        rest=ended - started - sum(by_node.values()),
        sent=came[str(number)] - ended,
    )


def _last_run(server: ServedProcess) -> dict[str, str]:
    run: dict[str, str] = server.call("/v1/runs?limit=1").document["runs"][0]
    return run


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _measure_handed(project: Path) -> tuple[float, list[float]]:
    init(project)
    file = project / "strandline.yaml"
    file.write_text(file.read_text() + _POLL)
    _run(project)  # the first build
    alone = Path(shutil.copytree(project, project.with_name("alone")))
    _write_line(alone, 0)
    cold = _run(alone)
    handed = []
    with serving(project) as server:
        server.wait_until_ready()
        for nth in range(WARM_LINES + LINES):
            _write_line(project, nth)
            handed.append(_run(project))
    return cold, handed[WARM_LINES:]


def _write_line(project: Path, nth: int) -> None:
    order = {"orderId": f"N-{nth}", "customer": "Chen", "amount": 5, "status": "PLACED"}
    line = json.dumps({**order, "changedAt": "2024-02-01T00:00:00Z"})
    (project / "data" / "orders" / f"new-{nth}.jsonl").write_text(line + "\n")


def _run(project: Path) -> float:
    """Seconds of `strandline run` from the shell. It must have had work."""
    words = [str(Path(sys.executable).with_name("strandline")), "run", "--project", str(project)]
    began = time.monotonic()
    ended = subprocess.run([*words, "--output", "json"], capture_output=True, text=True, timeout=600)
    seconds = time.monotonic() - began
    if ended.returncode or not json.loads(ended.stdout)["tasks"]:
        raise RuntimeError(ended.stderr + ended.stdout)
    return seconds


def served_lines(found: ServedRuns) -> Iterator[str]:
    ordered = sorted(fact.total for fact in found.facts)
    yield (
        f"a fact to its webhook, one at a time, {ROWS:,} rows: median {found.median:.2f} s,"
        f" least {ordered[0]:.2f} s, most {ordered[-1]:.2f} s, of {len(ordered)}"
    )
    parts: dict[str, list[float]] = defaultdict(list)
    for fact in found.facts:
        parts["the post is answered"].append(fact.answered)
        parts["until the run begins"].append(fact.begun)
        for node, seconds in fact.by_node.items():
            parts[f"task {node}"].append(seconds)
        parts["the rest of the run"].append(fact.rest)
        parts["from its end to the webhook"].append(fact.sent)
    for name, seconds_of in parts.items():
        yield f"  {name:<40}{statistics.median(seconds_of):8.3f} s"
    handed = ", ".join(f"{seconds:.1f}" for seconds in found.handed_seconds)
    yield (
        f"`strandline run`, one line into the project of `init`: alone {found.cold_seconds:.1f} s,"
        f" handed to a warm server {found.handed:.1f} s ({handed})"
    )
