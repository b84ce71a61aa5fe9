"""`python -m tests.faults.soak.serving --minutes 20`, or `make soak-serve MINUTES=20`.

`strandline serve` gets posts, requests, subscribers and a receiver that fails, and is killed again and again.
Then the laws are checked, and what every subscriber has. The exit code is 1 if anything is broken. The folder
is then kept.
"""

import argparse
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPException
from pathlib import Path
from types import FrameType
from typing import Any

from strandline.cli.quiet import quiet_spark
from tests.follower import Follower
from tests.served_process import ServedProcess, find_jvm, kill, start_server

from .feed import FACTOR, PRICES, PROJECT, write_at_once
from .figures import spread
from .posting import Poster
from .reader import Reader
from .rest import Rest, drain, find_broken
from .told import DEAR, Told, check_told, listening, publishing, send_rest

KILL_EVERY = (20.0, 60.0)
CALM = 0.15
"""The last share of the time, in which nothing is killed."""
POST_EVERY = (0.3, 1.5)
ASK_EVERY = (2.0, 8.0)
ENDS = ("server", "both", "asked", "jvm", "server", "both", "asked")
"""What is killed: the server, its JVM, or both at once. Or the server is asked to end."""
_ENDS_WITHIN = 30.0
_LOST = {"spark-lost", "spark-failed", "request-ends-server"}
"""Of a request that was being executed when the JVM was killed, or each time when the server was."""
_SLUG = re.compile(r"\[([a-z-]+)\]\s*$")
SOURCES = ("item_lines", "rate_lines", "block_lines")


@dataclass
class Life:
    process: ServedProcess
    began: float
    ready: float = 0.0
    """Seconds until it had Spark."""
    ended_by: str = ""
    ended: float = 0.0
    """Seconds that it took to end, if it was asked to."""


@dataclass
class Served:
    """The server that is killed, whichever process it is now."""

    folder: Path
    chance: random.Random
    lives: list[Life] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    lost_jvms: int = 0
    can_start: threading.Lock = field(default_factory=threading.Lock)
    """Held while the project file is broken: a server does not start with such a file."""
    can_read: threading.Lock = field(default_factory=threading.Lock)
    """The same: a query without the server is refused."""
    _ends: list[str] = field(default_factory=list)

    def find(self) -> ServedProcess | None:
        """None while nothing serves."""
        if not self.lives or self.lives[-1].ended_by:
            return None
        return self.lives[-1].process

    def find_port(self) -> int:
        process = self.find()
        return process.port if process else 0

    def begin(self) -> None:
        with self.can_start:
            began = time.monotonic()
            life = Life(process=start_server(self.folder), began=began)
        self.lives.append(life)
        life.process.wait_until_ready(180)
        life.ready = time.monotonic() - began

    def disturb(self) -> None:
        """End it in one of the ways, and start it again if it has ended."""
        self._ends = self._ends or self.chance.sample(ENDS, len(ENDS))
        how, life = self._ends.pop(), self.lives[-1]
        jvm = find_jvm(life.process.popen.pid)
        if how == "jvm":
            self.lost_jvms += 1
            if jvm is not None:
                subprocess.run(["kill", "-9", str(jvm)], check=False)
            self._require_new_jvm(life, jvm)
            return
        if how == "asked":
            code, life.ended = life.process.end()
            if code or life.ended > _ENDS_WITHIN:
                self.broken.append(f"a server ended with {code} after {life.ended:.1f} s")
        elif how == "server":
            life.process.popen.kill()
            life.process.popen.wait()
        else:
            kill(life.process)
        life.ended_by = how
        self.begin()

    def _require_new_jvm(self, life: Life, lost: int | None) -> None:
        """A server goes on when its JVM dies, and starts another one for the next work."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if life.process.popen.poll() is not None:
                self.broken.append("a server ended with its JVM")
                life.ended_by = "itself"
                self.begin()
                return
            if find_jvm(life.process.popen.pid) not in (None, lost):
                return
            time.sleep(0.2)
        self.broken.append("a server did not start another JVM within 120 s")

    def end(self) -> None:
        life = self.lives[-1]
        code, life.ended = life.process.end()
        life.ended_by = "asked"
        if code or life.ended > _ENDS_WITHIN:
            self.broken.append(f"the last server ended with {code} after {life.ended:.1f} s")


@dataclass
class Operator:
    """Asks for work over HTTP and by the command line, and looks whether each request ended."""

    served: Served
    chance: random.Random
    asked: dict[str, str] = field(default_factory=dict)
    """By request: the verb."""
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def ask(self) -> None:
        low = self.chance.randrange(PRICES)
        some = {"price": {"gte": low, "lte": low + 50}}
        what = self.chance.randrange(16)
        match what:
            case 0:
                self._change_factor()
            case 1:
                self._submit("backfill", {"job": "weigh", "stale": True})
            case 2:
                self._submit("backfill", {"job": "item", "partitions": "all", "reason": "soak"})
            case 3:
                self._submit("backfill", {"job": "tell", "where": f"price between {low} and {low + 50}"})
            case 4:
                self._submit("invalidations", {"dataset": "item", "row_filter": some, "reason": "soak"})
            case 5:
                self._submit(
                    "verify", {"names": [self.chance.choice(("item", "worth", "hot", "dear_items"))]}
                )
            case 6:
                self._submit("runs", {})
            case 7:
                since = (datetime.now(UTC) - timedelta(seconds=20)).isoformat()
                self._read("POST", "/v1/deliveries/replay", {"endpoint": "ops", "since": since}, {200})
            case 8:
                self._call("run")
            case 9:
                self._call("plan")
            case 10:
                self._break_project()
            case 11:
                self._call("query", "select count(*) as items from item", "--fresh")
            case 12:
                self._call("query", "select max(price) from item", "--engine", "spark")
            case 13:
                self._call("quarantine", "item", "--release")
            case 14:
                self._read("GET", "/metrics", None, {200})
                self._read("GET", "/v1/status", None, {200})
                self._read("GET", "/v1/deliveries?limit=5", None, {200})
            case _:
                self._call("maintain")

    def _submit(self, path: str, body: dict[str, Any]) -> None:
        answer = self._read("POST", f"/v1/{path}", body, {202, 400, 409})
        if answer is not None and answer.status == 202:
            self.asked[answer.document["request"]] = path

    def _read(self, method: str, path: str, body: object, expected: set[int]) -> Any:
        server = self.served.find()
        if server is None:
            return None
        try:
            answer = server.call(path, body, timeout=60)
        except (OSError, HTTPException):
            return None  # killed
        self.counts[f"{method} {path.partition('?')[0]} {answer.status}"] += 1
        if answer.status not in expected:
            self.broken.append(f"{path} was answered {answer.status} {answer.body[:300]!r}")
        return answer

    def _call(self, verb: str, *more: str) -> None:
        """The command line beside the server. 3: the server was killed meanwhile, or Spark failed."""
        words = [sys.executable, "-m", "strandline.cli", verb, *more, "--project", str(self.served.folder)]
        if verb != "maintain":
            words += ["--output", "json"]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=600)
        why = f" {found[1]}" if ended.returncode and (found := _SLUG.search(ended.stderr)) else ""
        self.counts[f"strandline {verb}: {ended.returncode}{why}"] += 1
        if ended.returncode not in (0, 1, 3):
            self.broken.append(f"strandline {verb} ended with {ended.returncode}: {ended.stderr[-500:]}")

    def _change_factor(self) -> None:
        file = self.served.folder / "strandline.yaml"
        text = file.read_text()
        now = next(number for number in range(1, 10) if FACTOR % number in text)
        write_at_once(file, text.replace(FACTOR % now, FACTOR % (now % 9 + 1)))
        self.counts["the factor changed"] += 1

    def _break_project(self) -> None:
        """A wrong project file leaves the old one in force, and is shown."""
        file = self.served.folder / "strandline.yaml"
        with self.served.can_start, self.served.can_read:
            text = file.read_text()
            write_at_once(file, text + "\nwhatever: [\n")
            time.sleep(3)
            write_at_once(file, text)
        self.counts["the project broken"] += 1

    def settle(self) -> Iterator[str]:
        """The requests that did not end, and those that failed without a reason."""
        server = self.served.find()
        assert server is not None
        for request, verb in self.asked.items():
            answer = server.call(f"/v1/requests/{request}")
            if answer.status != 200 or answer.document["status"] not in ("done", "failed"):
                yield f"{verb} {request}: {answer.status} {answer.body[:300]!r}"
                continue
            said = answer.document
            self.counts[f"{verb}: {said['status']}"] += 1
            if said["status"] == "failed" and said["error"]["slug"] not in _LOST:
                yield f"{verb} {request} failed: {said['error']}"
            wrong = [one for one in said.get("datasets", ()) if one["result"] == "different"]
            if wrong:
                yield f"{verb} {request}: {wrong[:1]}"


def soak(folder: Path, minutes: float, seed: str) -> list[str]:
    """What is broken."""
    with listening(seed) as (told, port):
        posted = PROJECT
        for source in SOURCES:
            begin = posted.index(f"  {source}: ")
            end = posted.index("\n", begin)
            posted = f"{posted[:begin]}  {source}: {{http: {{}}}}{posted[end:]}"
        folder.mkdir(parents=True, exist_ok=True)
        write_at_once(folder / "strandline.yaml", posted + publishing(port))
        served = Served(folder, random.Random(f"{seed}/fate"))
        try:
            return _soak(served, minutes * 60, seed, told)
        finally:
            for life in served.lives:
                kill(life.process)


def _soak(served: Served, seconds: float, seed: str, told: Told) -> list[str]:
    began = time.monotonic()
    served.begin()
    poster = Poster(served.folder, random.Random(f"{seed}/feed"), served.find)
    operator = Operator(served, random.Random(f"{seed}/operator"))
    followers = [
        Follower("item", ("id", "kind", "price"), "id", served.find_port),
        Follower("item", ("id", "price"), "id", served.find_port, f'where: {{price: {{_gte: "{DEAR}"}}}}'),
        Follower("dear_items", ("id", "kind", "price", "twice"), "id", served.find_port),
    ]
    reader, stop, chance = (
        Reader(served.folder, served.can_read),
        threading.Event(),
        random.Random(f"{seed}/pace"),
    )
    threads = [
        threading.Thread(target=_repeat, args=(stop, chance, every, work), daemon=True)
        for every, work in (
            (POST_EVERY, lambda: _post(poster, chance)),
            (ASK_EVERY, operator.ask),
        )
    ]
    for follower in followers:
        follower.start()
    reader.start()
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    calm_from = end - CALM * seconds
    while (now := time.monotonic()) < end:
        until = now + chance.uniform(*KILL_EVERY)
        if until > calm_from:
            time.sleep(end - now)
            break
        time.sleep(until - now)
        served.disturb()
        last = served.lives[-1]
        say(f"{time.monotonic() - began:6.0f} s: life {len(served.lives)}, ready after {last.ready:.1f} s")
    stop.set()
    for thread in threads:
        thread.join(600)
    poster.finish()
    reader.stop()
    say("nobody is killed any more; the work drains and the laws are checked")
    broken = [*served.broken]
    broken += _settle(served, followers)
    broken += operator.settle()
    for follower in followers:
        follower.stop()
    served.end()
    found = (*(one.broken for one in followers), poster.broken, operator.broken, reader.broken)
    broken += dict.fromkeys(text for texts in found for text in texts)
    try:
        with quiet_spark():
            drain(served.folder)
            send_rest(served.folder, told)
            broken += find_broken(Rest.of(served.folder, poster), partial(check_told, told=told))
    except Exception as error:  # noqa: BLE001 any error is reported with the figures
        broken.append(f"at rest: {type(error).__name__} {error}")
    _print(served, seconds, seed, poster, operator, followers, reader, told)
    return broken


def _post(poster: Poster, chance: random.Random) -> None:
    if chance.random() < 0.05:
        poster.post_broken()
    poster.feed()


def _repeat(stop: threading.Event, chance: random.Random, every: tuple[float, float], work: Any) -> None:
    while not stop.wait(chance.uniform(*every)):
        work()


def _settle(served: Served, followers: list[Follower]) -> Iterator[str]:
    """Nothing waits any more, and every subscriber has the rows of its table."""
    server = served.find()
    assert server is not None
    for _ in range(6):
        server.call("/v1/runs?wait=300", {})
        if not server.call("/v1/plan").document["tasks"]:
            break
    else:
        yield f"work does not drain: {server.call('/v1/plan').body[:500]!r}"
    for one in followers:
        expected = _read_all(server, one)
        until = time.monotonic() + 30
        while one.rows != expected and time.monotonic() < until:
            time.sleep(0.1)
        if one.rows != expected:
            differing = [key for key in {*one.rows, *expected} if one.rows.get(key) != expected.get(key)]
            yield f"a subscriber of {one.dataset} has other rows: {sorted(differing)[:5]}"


def _read_all(server: ServedProcess, follower: Follower) -> dict[str, dict[str, Any]]:
    where = f"{follower.where}, " if follower.where else ""
    query = f"{{ {follower.dataset}({where}limit: 1000) {{ {' '.join(follower.columns)} }} }}"
    rows = server.call("/graphql", {"query": query}).document["data"][follower.dataset]
    return {row[follower.key]: row for row in rows}


def _print(
    served: Served,
    seconds: float,
    seed: str,
    poster: Poster,
    operator: Operator,
    followers: list[Follower],
    reader: Reader,
    told: Told,
) -> None:
    ends = Counter(life.ended_by for life in served.lives)
    kills = ends["server"] + ends["both"] + served.lost_jvms
    codes = sum((one.codes for one in followers), Counter[int]())
    say("")
    say(f"{'minutes':<48}{seconds / 60:g}, seed {seed}")
    say(f"{'kills':<48}{kills}: server {ends['server']}, both {ends['both']}, JVM {served.lost_jvms}")
    say(f"{'asked to end':<48}{ends['asked']}")
    say(
        f"{'posts answered, answers lost, duplicates':<48}"
        f"{poster.answered:,}, {poster.unanswered:,}, {poster.duplicates:,}"
    )
    say(f"{'posts refused, as they must be':<48}{poster.refused}")
    say(f"{'lines sent':<48}{poster.lines:,}")
    say(f"{'messages to subscribers':<48}{sum(one.messages for one in followers):,}")
    say(
        f"{'connections resumed, begun anew':<48}"
        f"{sum(one.resumed for one in followers)}, {sum(one.begun_anew for one in followers)}"
    )
    say(f"{'connections closed, by code':<48}{json.dumps(dict(sorted(codes.items())))}")
    say(f"{'webhooks that came, failed answers':<48}{len(told.came):,}, {told.refused:,}")
    say(f"{'queries meanwhile':<48}{reader.queries:,}")
    for what, count in sorted(operator.counts.items()):
        say(f"  {what:<46}{count}")
    say("")
    say(f"{'seconds':<48}{'median':>8}{'p95':>8}{'max':>8}   of")
    say(spread("from its start until it is ready", [life.ready for life in served.lives]))
    say(spread("from SIGTERM to its end", [life.ended for life in served.lives if life.ended_by == "asked"]))


def say(text: str) -> None:
    print(text, flush=True)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak.serving", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, metavar="N")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    call = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _end)
    folder = Path(tempfile.mkdtemp(prefix="strandline-soak-"))
    broken = soak(folder, call.minutes, call.seed)
    for text in broken:
        say(f"BROKEN  {text}")
    say(f"broken {len(broken)}")
    if broken:
        say(f"Kept for a look: {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
