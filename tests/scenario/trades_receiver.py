"""The receiver of examples/trades on a port that is free, so that tests can run at the same time."""

import socket
from contextlib import closing
from pathlib import Path

PORT = 8765
SECRET = "whsec_c3RyYW5kbGluZS1leGFtcGxlLXNlY3JldC0x"


def move_receiver(project: Path) -> int:
    """Let the project's receiver and its endpoint use a free port. Gives it."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = int(unused.getsockname()[1])
    for name in ("receiver.py", "strandline.yaml"):
        file = project / name
        file.write_text(file.read_text(encoding="utf-8").replace(str(PORT), str(port)), encoding="utf-8")
    return port
