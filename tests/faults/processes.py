"""What tests do to real processes: start, hold and end a run, restart its database, cut its connection."""

import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.contract.postgres import USER, Identity, unprivileged
from tests.harness import TestProject

all_faults = pytest.mark.skipif(
    os.environ.get("STRANDLINE_FAULTS") != "all", reason="`make test-faults`: minutes of Spark and JVMs"
)

YAML = """
    project: register
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      item:
        from: events
        columns: {id: id, name: name, at: {path: at, type: timestamp_ms}}
        record_set: {key: [id], order_by: [at]}
"""


def start(project: TestProject, failpoints: str = "", **environ: str) -> subprocess.Popen[str]:
    given = {
        **os.environ,
        "STRANDLINE_SPARK_MASTER": "local[2]",
        "STRANDLINE_FAILPOINTS": failpoints,
        **environ,
    }
    command = [sys.executable, "-m", "strandline.cli", "run", "--project", str(project.folder)]
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def facts(project: TestProject) -> set[tuple[object, ...]]:
    return project.rows("item_facts", "id", "name")


def lake_of(project: TestProject) -> Path:
    return project.folder / ".strandline" / "lake"


WATCHED = """
import sys, threading, time
from pathlib import Path
from strandline.cli import main
from strandline.dispatch.failpoints import hits

def tell(point, file):
    while not hits[point]:
        time.sleep(0.02)
    file.touch()

threading.Thread(target=tell, args=(sys.argv[1], Path(sys.argv[2])), daemon=True).start()
sys.exit(main(sys.argv[3:]))
"""
"""The command line, and a file that appears when it has reached a point.

A failpoint stops a process without any output.
"""


def wait_until(true: Callable[[], object], why: str, seconds: float = 120) -> None:
    """Poll; a test that waits in vain says what for."""
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, f"waited {seconds} s in vain: {why}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Held:
    """A run that stands still at a point."""

    process: subprocess.Popen[str]
    go: Path

    def let_go(self) -> None:
        self.go.touch()


@contextmanager
def held_at(project: TestProject, point: str, **environ: str) -> Iterator[Held]:
    """A run that stands at `point:node` until it is let go; ended with the block, whatever became of it."""
    go, here = project.folder / "go", project.folder / "here"
    go.unlink(missing_ok=True)
    given = {**os.environ, "STRANDLINE_SPARK_MASTER": "local[2]", "STRANDLINE_WORKERS": "1", **environ}
    given["STRANDLINE_FAILPOINTS"] = f"{point}=block:{go}"
    command = [sys.executable, "-c", WATCHED, point, str(here), "run", "--project", str(project.folder)]
    process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: here.exists() or process.poll() is not None, f"a run at {point}")
        assert process.poll() is None, process.communicate()
        yield Held(process=process, go=go)
    finally:
        here.unlink(missing_ok=True)
        if process.poll() is None:
            process.kill()
            process.communicate()


STARTED_AND_STOPPED = '"$0" -D "$1" -o "$2" -l "$3" -w start; read _; "$0" -D "$1" -m immediate -w stop'
"""A server that outlives no test session, and that others may restart meanwhile."""


@dataclass(frozen=True)
class OwnPostgres:
    """A server for one test, which may stop or crash it.

    Unlike the shared server it keeps committed data when it crashes.
    """

    port: int
    _control: Path
    _folder: Path
    _identity: Identity

    @property
    def address(self) -> str:
        return address_at(self.port)

    def stop(self) -> None:
        """As if it had crashed."""
        self._call("-m", "immediate", "stop")

    def start(self) -> None:
        self._call("-o", _options(self.port), "start")

    def restart(self) -> None:
        self._call("-m", "immediate", "restart")

    def answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(
                host="127.0.0.1", port=self.port, user=USER, dbname="postgres", connect_timeout=2
            ).close()
            return True
        return False

    def _call(self, *words: str) -> None:
        command = [
            str(self._control),
            "-D",
            str(self._folder / "data"),
            "-l",
            str(self._folder / "log"),
            "-w",
            *words,
        ]
        subprocess.run(command, check=True, cwd=self._folder, stdout=subprocess.DEVNULL, **self._identity)


def address_at(port: int) -> str:
    return f"postgresql+psycopg://{USER}@127.0.0.1:{port}/postgres"


def _options(port: int) -> str:
    return (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
        "-c shared_buffers=16MB -c fsync=off"
    )


@contextmanager
def own_postgres(binaries: Path) -> Iterator[OwnPostgres]:
    folder = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
    try:
        identity = unprivileged(folder)
        data, log, control = folder / "data", folder / "log", binaries / "pg_ctl"
        flags = [f"--username={USER}", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]
        initdb: list[str | Path] = [binaries / "initdb", "-D", data, *flags]
        subprocess.run(initdb, check=True, cwd=folder, capture_output=True, **identity)
        port = _free_port()
        command: list[str | Path] = ["sh", "-c", STARTED_AND_STOPPED, control, data, _options(port), log]
        keeper = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            **identity,
        )
        with keeper:  # closes its input and waits
            server = OwnPostgres(port=port, _control=control, _folder=folder, _identity=identity)
            wait_until(server.answers, "Postgres to answer")
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class CutAtCommit:
    """Stands between a run and its Postgres, and cuts the connection once.

    It cuts at the COMMIT of a transaction that names `what`. If `committed` is set, the server receives the
    COMMIT and only its answer is lost. Otherwise the server does not receive it. The client cannot
    distinguish the two.
    """

    def __init__(self, port: int, what: bytes, *, committed: bool) -> None:
        self._port, self._what, self._committed = port, what, committed
        self._armed = threading.Event()
        self.cut = threading.Event()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._pass_on(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = address_at(self._server.server_address[1])

    def __enter__(self) -> "CutAtCommit":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def arm(self) -> None:
        self._armed.set()

    def _pass_on(self, client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as server, suppress(OSError):
            silent = threading.Event()
            threading.Thread(target=self._pass_back, args=(server, client, silent), daemon=True).start()
            named = False
            while data := client.recv(1 << 16):
                named |= self._what in data
                if b"COMMIT" in data and named and self._armed.is_set() and not self.cut.is_set():
                    if not self._committed:
                        self.cut.set()
                        _end(client, server)
                        return
                    silent.set()
                named &= b"COMMIT" not in data and b"ROLLBACK" not in data
                server.sendall(data)
            _end(client, server)

    def _pass_back(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if silent.is_set() and b"COMMIT" in data:
                    self.cut.set()
                    break
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
