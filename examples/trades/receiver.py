"""A receiver of webhooks: it checks the signature, takes each event once, and remembers what it had.

`python receiver.py start` starts one in the background, `show` prints what it has taken, and `stop` ends it.
`show 15` waits until it has taken 15 events. The secret is read from DESK_SECRET. A library for Standard
Webhooks does what `verify` does; it is written out here to show that nothing else is needed.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = "127.0.0.1"
PORT = 8765
FOLDER = Path("received")
RUNNING = FOLDER / "port"
"""The receiver ends when this file is removed."""
TAKEN = FOLDER / "events.db"
LOG = FOLDER / "log"
OLDEST = 300
"""A message that was signed longer ago than this, in seconds, may have been recorded by somebody else."""
LONGEST = 1024 * 1024
_WAIT = 20.0
_WAIT_FOR_EVENTS = 120.0


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether the message was signed with the secret, is complete, and was signed just now."""
    event_id, signed_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not signed_at.isdecimal() or abs(now - int(signed_at)) > OLDEST:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{signed_at}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    signatures = headers.get("webhook-signature", "").split()  # one for each secret that the sender has
    return any(
        hmac.compare_digest(expected, signature.removeprefix("v1,").encode())
        for signature in signatures
        if signature.startswith("v1,")
    )


def take(database: sqlite3.Connection, event_id: str, body: bytes) -> bool:
    """Record an event. One that was taken before is only counted. False if it then had another body.

    The event is on disk before the answer goes out: an event that was answered is never sent again by itself.
    """
    with database:
        database.execute(
            "INSERT INTO events VALUES (?, ?, 1)"
            " ON CONFLICT (event_id) DO UPDATE SET came = came + 1 WHERE body = excluded.body",
            (event_id, body),
        )
        (known,) = database.execute("SELECT body FROM events WHERE event_id = ?", (event_id,)).fetchone()
    return bytes(known) == body


def open_database() -> sqlite3.Connection:
    FOLDER.mkdir(exist_ok=True)
    database = sqlite3.connect(TAKEN)
    database.execute(
        "CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, body BLOB NOT NULL, came INTEGER)"
    )
    return database


class Hook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._answer(self._judge())

    def _judge(self) -> int:
        """204: taken, now or before. 401: not from the sender we know. 409: an id that had another body."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            return 413
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            if not verify(os.environ["DESK_SECRET"], headers, body, time.time()):
                return 401
        except (binascii.Error, UnicodeEncodeError):
            return 401
        with closing(open_database()) as database:
            return 204 if take(database, headers["webhook-id"], body) else 409

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


def serve() -> None:
    with ThreadingHTTPServer((HERE, PORT), Hook) as server:
        server.timeout = 0.2
        while RUNNING.exists():
            server.handle_request()


def start() -> int:
    if not os.environ.get("DESK_SECRET"):
        print("Set DESK_SECRET first.", file=sys.stderr)
        return 2
    if is_listening():
        print(f"Something listens on port {PORT} already.", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    RUNNING.write_text(f"{PORT}\n", encoding="utf-8")
    with LOG.open("a", encoding="utf-8") as log:
        subprocess.Popen(
            [sys.executable, __file__, "serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return wait_until("listens on", "does not start; received/log says why", listening=True)


def stop() -> int:
    RUNNING.unlink(missing_ok=True)
    return wait_until("has left", "still listens", listening=False)


def wait_until(done: str, failed: str, *, listening: bool) -> int:
    until = time.monotonic() + _WAIT
    while is_listening() is not listening:
        if time.monotonic() > until:
            print(f"The receiver {failed}.", file=sys.stderr)
            return 1
        time.sleep(0.05)
    print(f"The receiver {done} http://{HERE}:{PORT}/hook.")
    return 0


def is_listening() -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((HERE, PORT)) == 0


def show(expected: int) -> int:
    """What was taken, by trigger and row, and how often it came, once there are so many events."""
    until = time.monotonic() + _WAIT_FOR_EVENTS
    with closing(open_database()) as database:
        while time.monotonic() < until:
            (events,) = database.execute("SELECT count(*) FROM events").fetchone()
            if events >= expected:
                break
            time.sleep(0.2)
        taken = [(json.loads(body), came) for body, came in database.execute("SELECT body, came FROM events")]
    lines = [("trigger", "row", "event", "event_id", "came")]
    for event, came in sorted(taken, key=lambda one: (one[0]["trigger_name"], *place_of(one[0]))):
        row, _ = place_of(event)
        lines.append((event["trigger_name"], row, event["event_type"], event["event_id"], str(came)))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    return 0 if len(taken) >= expected else 1


def place_of(event: dict[str, object]) -> tuple[str, int]:
    """The row that the event is about, and when it changed."""
    data = event["data"]
    assert isinstance(data, dict)
    return str(data.get("trade_id", data.get("symbol"))), int(str(event["source_timestamp"]))


def main(arguments: list[str]) -> int:
    match arguments:
        case ["start"]:
            return start()
        case ["stop"]:
            return stop()
        case ["show"]:
            return show(0)
        case ["show", events] if events.isdecimal():
            return show(int(events))
        case ["serve"]:
            serve()
            return 0
        case _:
            print("usage: python receiver.py start|show [EVENTS]|stop", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
