"""The receiver and the server of examples/trades on free ports, so that tests can run at the same time."""

import socket
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from examples.play import Command

PORT = 8765
SERVED = 8321
SECRET = "whsec_c3RyYW5kbGluZS1leGFtcGxlLXNlY3JldC0x"


def move_receiver(project: Path) -> int:
    """Let the project's receiver and its endpoint use a free port. Gives it."""
    port = find_port()
    for name in ("receiver.py", "strandline.yaml"):
        file = project / name
        file.write_text(file.read_text(encoding="utf-8").replace(str(PORT), str(port)), encoding="utf-8")
    return port


def move_server(project: Path, commands: Iterable[Command]) -> tuple[Command, ...]:
    """The commands with the server on a free port, where the project's subscriber looks for it."""
    port = str(find_port())
    file = project / "subscriber.py"
    file.write_text(file.read_text(encoding="utf-8").replace(str(SERVED), port), encoding="utf-8")
    serve = "strandline serve "
    return tuple(
        replace(
            command,
            text=command.text.replace(f":{SERVED}", f":{port}").replace(serve, f"{serve}--port {port} "),
        )
        for command in commands
    )


def find_port() -> int:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])
