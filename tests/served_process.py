"""`strandline serve` as a process of its own, for tests and benchmarks: started, called, measured, ended."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLAIN, REAL = "tests.unit.serve.plain_server", "strandline.cli"
"""The modules that serve: with plain workers, and with Spark."""
_ADDRESS = re.compile(r"Serving (http://\S+) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProcess:
    popen: subprocess.Popen[bytes]
    address: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def call(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None, timeout: float = 330
    ) -> Answer:
        """GET, or POST if there is a body: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"content-type": "application/json", **(headers or {})}
        request = urllib.request.Request(f"{self.address}{path}", data=data, headers=given)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return Answer(status=answer.status, headers=dict(answer.headers), body=answer.read())
        except urllib.error.HTTPError as error:
            return Answer(status=error.code, headers=dict(error.headers), body=error.read())

    def wait_until_ready(self, seconds: float = 120) -> None:
        self.wait_for(lambda: self.call("/readyz").status == 200, seconds, "the server is not ready")

    def wait_for(self, done: Callable[[], bool], seconds: float, otherwise: str) -> None:
        until = time.monotonic() + seconds
        while not done():
            if self.popen.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{otherwise}\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def end(self, number: int = signal.SIGTERM, seconds: float = 60) -> tuple[int, float]:
        """Its exit code, and how long it took to end."""
        began = time.monotonic()
        self.popen.send_signal(number)
        self.popen.wait(seconds)
        return self.popen.returncode, time.monotonic() - began


def start_server(
    folder: Path, *options: str, module: str = REAL, environ: Mapping[str, str] | None = None
) -> ServedProcess:
    """Start a server for a project and return once it answers. Its log is added to `serve.log` there."""
    log = folder / "serve.log"
    words = [sys.executable, "-m", module, "serve", "--port", "0", "--project", str(folder), *options]
    before = log.stat().st_size if log.exists() else 0
    with log.open("ab") as stream:
        popen = subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    until = time.monotonic() + 60
    while True:
        said = log.read_bytes()[before:].decode()
        if address := _ADDRESS.search(said):
            return ServedProcess(popen=popen, address=address[1], log=log)
        if popen.poll() is not None or time.monotonic() > until:
            popen.kill()
            raise AssertionError(f"the server does not start:\n{said}")
        time.sleep(0.05)


def kill(process: ServedProcess) -> None:
    """End it and its JVM, whatever it does."""
    if process.popen.poll() is None:
        os.killpg(process.popen.pid, signal.SIGKILL)
    process.popen.wait()


@contextmanager
def serving(
    folder: Path, *options: str, module: str = REAL, environ: Mapping[str, str] | None = None
) -> Iterator[ServedProcess]:
    process = start_server(folder, *options, module=module, environ=environ)
    try:
        yield process
    finally:
        kill(process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A measurement of one process."""

    at: float
    rss: int
    handles: int
    threads: int


def measure_process(pid: int) -> Sample | None:
    """None if it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        pages = int((folder / "statm").read_text().split()[1])
        handles = sum(1 for _ in (folder / "fd").iterdir())
        threads = sum(1 for _ in (folder / "task").iterdir())
    except OSError:
        return None
    rss = pages * os.sysconf("SC_PAGE_SIZE")
    return Sample(at=time.monotonic(), rss=rss, handles=handles, threads=threads)


def find_jvm(pid: int) -> int | None:
    """The child process that runs Java."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                if Path(f"/proc/{child}/exe").readlink().name == "java":
                    return int(child)
        except OSError:
            continue  # ended meanwhile
    return None
