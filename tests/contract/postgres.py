"""A throw-away Postgres from Debian's binaries, stopped with the test session.

It has its own folder and port, and does not use fsync.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

import psycopg

USER = "strandline"
PASSWORD = "not/a:secret"
"""It contains characters that an address must escape. Postgres checks it, so tests can use a wrong one."""

ENDS_WITH_ITS_INPUT = '"$@" & read _; kill -INT $!; wait $!'
"""Stops the server with the test session: the pipe closes even when the session is killed.

INT closes connections that are still open.
"""


class Identity(TypedDict, total=False):
    """Arguments of `subprocess` for the user that a process runs as."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Postgres:
    port: int
    _numbers: Iterator[int] = field(default_factory=count)

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{name}"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname="postgres",
            autocommit=True,
            connect_timeout=2,
        )


def find_binaries() -> Path | None:
    """The folder of the newest installed server."""
    folders = [
        server.parent
        for server in Path("/usr/lib/postgresql").glob("*/bin/postgres")
        if (server.parent / "initdb").exists()
    ]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


@contextmanager
def running_postgres(binaries: Path) -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
    try:
        identity = unprivileged(folder)
        (folder / "password").write_text(PASSWORD)
        data = folder / "data"
        flags = [
            f"--username={USER}",
            f"--pwfile={folder / 'password'}",
            "--auth=scram-sha-256",
            "--no-sync",
            "--encoding=UTF8",
        ]
        initdb: list[str | Path] = [binaries / "initdb", "-D", data, "--locale=C.UTF-8", *flags]
        subprocess.run(initdb, check=True, cwd=folder, capture_output=True, **identity)
        with _started(binaries, data, identity) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unprivileged(folder: Path) -> Identity:
    """Postgres refuses to run as root. In that case another user owns the folder and runs the server."""
    folder.chmod(0o755)
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _started(binaries: Path, data: Path, identity: Identity) -> Iterator[Postgres]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "shared_buffers": "16MB",
        "max_connections": 100,
    }
    arguments = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
    log = data.parent / "log"
    command: list[str | Path] = [
        "sh",
        "-c",
        ENDS_WITH_ITS_INPUT,
        "sh",
        binaries / "postgres",
        "-D",
        data,
        *arguments,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=data,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **identity,
        )
    with process:  # closes its input and waits
        server = Postgres(port=port)
        _wait_for(server, log)
        yield server


def _wait_for(server: Postgres, log: Path) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            server.connect().close()
            return
        except psycopg.OperationalError:
            if "database system is shut down" in log.read_text() or time.monotonic() > give_up:
                raise RuntimeError(f"Postgres did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
