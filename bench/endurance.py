"""`python -m bench.endurance --minutes 60`: `serve` at one post a second, watched for growth.

A receiver takes the webhooks, subscribers follow, others connect and leave, a monitor asks for metrics and
queries. `maintain` is called every five minutes, as a timer does: without it each query reads more files. The
exit code is 1 if the memory, the handles or the threads of the server or its JVM grew after the first ten
minutes, or if a subscriber was told anything wrong. Ctrl-C ends it earlier, with a report.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.follower import Follower
from tests.receiver import receiving_in_thread
from tests.served_process import Sample, ServedProcess, find_jvm, measure_process, serving

from .progress import say
from .served_project import ENVIRON, LARGE, trade, trade_lines, write_project

WARM_UP = 600.0
SAMPLE_EVERY = 5.0
MAINTAIN_EVERY = 300.0
ROWS = 5_000
MOST_MEMORY, MOST_HANDLES, MOST_THREADS = 1.05, 5, 3
"""Growth from the window after the warm-up to the last one that counts as none: a factor, and numbers."""
_AFTER_GC = re.compile(r"\[(\d+\.\d+)s\].*Pause.*->(\d+)M\(")


@dataclass
class Watched:
    """What was seen of one process."""

    name: str
    samples: list[Sample] = field(default_factory=list)

    def between(self, begin: float, end: float, what: str) -> float:
        return statistics.median(
            float(getattr(sample, what)) for sample in self.samples if begin <= sample.at < end
        )


@dataclass
class Endurance:
    """A server that is used, and what was seen of it."""

    folder: Path
    server: ServedProcess
    environ: Mapping[str, str]
    stop: threading.Event = field(default_factory=threading.Event)
    posts: int = 0
    failed: list[str] = field(default_factory=list)
    visits: int = 0
    python: Watched = field(default_factory=lambda: Watched("server"))
    jvm: Watched = field(default_factory=lambda: Watched("JVM"))

    def post_always(self) -> None:
        due = time.monotonic()
        while not self.stop.is_set():
            self.posts += 1
            number = self.posts % ROWS
            quantity = LARGE + self.posts if self.posts % 20 == 0 else self.posts % 100
            body = trade(number, quantity, self.posts + 1)
            self._expect(202, "/v1/facts/pushed", body, {"idempotency-key": f"post-{self.posts}"})
            due += 1
            self.stop.wait(max(0.0, due - time.monotonic()))

    def visit_always(self) -> None:
        """What monitors and people do: they look, query, follow a page of changes, subscribe and leave."""
        query = {"query": "{ trades(limit: 5) { trade_id quantity } }"}
        while not self.stop.wait(10):
            self.visits += 1
            self._expect(200, "/metrics")
            self._expect(200, "/v1/status")
            self._expect(200, "/graphql", query)
            self._expect(200, "/v1/datasets/trades/changes?wait=1&limit=10")
            where = urllib.parse.quote(json.dumps({"quantity": {"_gte": self.posts}}))
            self._expect(200, f"/v1/datasets/trades/rows?where={where}")
            leaving = follow(self.server, "by_symbol", ("symbol", "quantity"), "symbol")
            leaving.start()
            self.stop.wait(2)
            leaving.stop()
            self.failed += leaving.broken

    def maintain_always(self) -> None:
        """A timer calls it beside the server. The server does it between two runs."""
        words = [
            sys.executable,
            "-m",
            "strandline.cli",
            "maintain",
            "--project",
            str(self.folder / "project"),
        ]
        while not self.stop.wait(MAINTAIN_EVERY):
            ended = subprocess.run(words, capture_output=True, text=True, timeout=600, env=self.environ)
            if ended.returncode:
                self.failed.append(f"maintain ended with {ended.returncode}: {ended.stderr[-300:]}")

    def sample_always(self) -> None:
        jvm = find_jvm(self.server.popen.pid)
        while not self.stop.wait(SAMPLE_EVERY):
            for watched, pid in ((self.python, self.server.popen.pid), (self.jvm, jvm)):
                sample = measure_process(pid) if pid is not None else None
                if sample is None:
                    self.failed.append(f"the {watched.name} has ended")
                    self.stop.set()
                else:
                    watched.samples.append(sample)

    def _expect(
        self, status: int, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> None:
        try:
            answer = self.server.call(path, body, headers, timeout=60)
        except OSError as error:
            self.failed.append(f"{path}: {error}")
            return
        if answer.status != status:
            self.failed.append(f"{path}: {answer.status} {answer.body[:200]!r}")


def follow(
    server: ServedProcess, dataset: str, columns: tuple[str, ...], key: str, where: str = ""
) -> Follower:
    return Follower(dataset=dataset, columns=columns, key=key, find_port=lambda: server.port, where=where)


def endure(folder: Path, minutes: float) -> bool:
    """Whether nothing grew and nothing was wrong."""
    gc_log = folder / "gc.log"
    with receiving_in_thread() as receiver:
        write_project(folder / "project", receiver.port, more=True, memory="1g")
        environ = {**ENVIRON, "JAVA_TOOL_OPTIONS": f"-Xlog:gc:file={gc_log}:uptime"}
        with serving(folder / "project", environ=environ) as server:
            server.wait_until_ready()
            first = server.call(
                "/v1/facts/pushed?wait=300", trade_lines(0, ROWS), {"content-type": "application/x-ndjson"}
            )
            assert first.status == 200, first.body
            run = Endurance(folder=folder, server=server, environ={**os.environ, **ENVIRON})
            followers = [
                follow(server, "trades", ("trade_id", "quantity"), "trade_id"),
                follow(
                    server, "trades", ("trade_id", "quantity"), "trade_id", 'where: {quantity: {_gte: "50"}}'
                ),
                follow(server, "by_symbol", ("symbol", "trades", "quantity"), "symbol"),
            ]
            began = time.monotonic()
            _work(run, followers, minutes * 60)
            ended = time.monotonic()
            _settle(run, followers)
            cpu = _cpu_seconds(server)
            code, seconds = server.end()
            say(f"the server ended with {code} after {seconds:.1f} s")
    wrong = [*run.failed, *(text for one in followers for text in one.broken)]
    if code or seconds > 30:
        wrong.append(f"the server ended with {code} after {seconds:.1f} s")
    print(f"\n{'minutes':<44}{(ended - began) / 60:.1f}")
    print(f"{'posts, webhooks, visits':<44}{run.posts:,}, {len(receiver.received):,}, {run.visits:,}")
    print(f"{'messages to subscribers':<44}{sum(one.messages for one in followers):,}")
    print(f"{'CPU seconds of server and JVM':<44}{cpu:.0f}")
    grown = list(_report(run, began, ended, gc_log))
    for text in (*wrong[:20], *grown):
        print(f"WRONG  {text}")
    print(f"wrong {len(wrong)}, grown {len(grown)}")
    return not wrong and not grown


def _work(run: Endurance, followers: list[Follower], seconds: float) -> None:
    threads = [
        threading.Thread(target=work, daemon=True)
        for work in (run.post_always, run.visit_always, run.maintain_always, run.sample_always)
    ]
    for follower in followers:
        follower.start()
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    signal.signal(signal.SIGINT, lambda *_: run.stop.set())  # it ends earlier, and reports
    while not run.stop.wait(min(60.0, max(0.0, end - time.monotonic()))) and time.monotonic() < end:
        if run.python.samples and run.jvm.samples:
            python, jvm = run.python.samples[-1], run.jvm.samples[-1]
            say(
                f"  {run.posts:,} posts; server {python.rss / 1e6:.0f} MB, {python.handles} handles,"
                f" {python.threads} threads; JVM {jvm.rss / 1e6:.0f} MB, {jvm.handles}, {jvm.threads}"
            )
    run.stop.set()
    for thread in threads:
        thread.join(120)


def _settle(run: Endurance, followers: list[Follower]) -> None:
    """The last posts are published, and every subscriber has the table."""
    answer = run.server.call("/v1/runs?wait=120", {})
    if answer.status != 200:
        run.failed.append(f"the last run: {answer.status} {answer.body[:300]!r}")
    tables = [_read_all(run.server, one) for one in followers]
    until = time.monotonic() + 30
    while time.monotonic() < until and any(
        one.rows != table for one, table in zip(followers, tables, strict=True)
    ):
        time.sleep(0.1)
    for one, table in zip(followers, tables, strict=True):
        if one.rows != table:
            run.failed.append(f"a subscriber of {one.dataset} has other rows than the table")
        one.stop()


def _read_all(server: ServedProcess, follower: Follower) -> dict[str, dict[str, object]]:
    """What a query of the whole table gives, in the subscriber's columns."""
    rows: dict[str, dict[str, object]] = {}
    where = f"{follower.where}, " if follower.where else ""
    while True:
        page = f"limit: 1000, offset: {len(rows)}, order_by: [{{{follower.key}: asc}}]"
        query = f"{{ {follower.dataset}({where}{page}) {{ {' '.join(follower.columns)} }} }}"
        part = server.call("/graphql", {"query": query}).document["data"][follower.dataset]
        rows |= {row[follower.key]: row for row in part}
        if len(part) < 1000:
            return rows


def _cpu_seconds(server: ServedProcess) -> float:
    ticks = 0
    for pid in (server.popen.pid, find_jvm(server.popen.pid)):
        if pid is not None:
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / 100


def _report(run: Endurance, began: float, ended: float, gc_log: Path) -> Iterator[str]:
    """Print what was seen in the window after the warm-up and in the last one. Gives what has grown."""
    warm = min(WARM_UP, (ended - began) / 3)
    width = min(300.0, (ended - began - warm) / 2)
    early, late = (began + warm, began + warm + width), (ended - width, ended)
    print(f"\n{'medians of minutes':<44}{_minutes(early, began):>14}{_minutes(late, began):>14}")
    checks: list[tuple[str, Callable[[float], float], Callable[[float], float]]] = [
        ("rss", lambda value: value / 1e6, lambda before: before * MOST_MEMORY),
        ("handles", float, lambda before: before + MOST_HANDLES),
        ("threads", float, lambda before: before + MOST_THREADS),
    ]
    for watched in (run.python, run.jvm):
        for what, scale, most in checks:
            before, after = (scale(watched.between(*window, what)) for window in (early, late))
            name = f"{watched.name}: {'memory, MB' if what == 'rss' else what}"
            print(f"{name:<44}{before:>14.0f}{after:>14.0f}")
            if after > most(before):
                yield f"{name} grew from {before:.0f} to {after:.0f}"
    live = _live_heap(gc_log)
    if live:
        print(f"{'JVM: least heap after a collection, MB':<44}" + " ".join(f"{mb}" for mb in live))


def _minutes(window: tuple[float, float], began: float) -> str:
    return f"{(window[0] - began) / 60:.0f}-{(window[1] - began) / 60:.0f}"


def _live_heap(gc_log: Path) -> list[int]:
    """By part of the time, one of ten: what was left after the collection that left least."""
    found = [(float(at), int(left)) for at, left in _AFTER_GC.findall(gc_log.read_text())]
    if not found:
        return []
    end = found[-1][0] + 0.001
    parts: list[list[int]] = [[] for _ in range(10)]
    for at, left in found:
        parts[int(at / end * 10)].append(left)
    return [min(part) for part in parts if part]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.endurance", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, metavar="N")
    folder = Path(tempfile.mkdtemp(prefix="strandline-endurance-"))
    well = endure(folder, parser.parse_args().minutes)
    if well:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"Kept for a look: {folder}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
