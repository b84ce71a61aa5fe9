"""A subscriber of large trades: it keeps them in a database of its own, and goes on after what it has had.

`python subscriber.py start` starts one in the background, `show` prints what it has, `stop` ends it. What it
is told and the cursor of that are stored in one transaction. So nothing is missing and nothing is applied
twice, whoever was stopped, and whenever.
"""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import websockets
from websockets.sync.client import ClientConnection, connect

HERE = "127.0.0.1"
PORT = 8321
FOLDER = Path("subscribed")
RUNNING = FOLDER / "running"
"""The subscriber ends when this file is removed."""
KEPT = FOLDER / "large_trades.db"
LOG = FOLDER / "log"
PROTOCOL = websockets.Subprotocol("graphql-transport-ws")
QUERY = """subscription($after: String) { large_trades(after: $after) {
  operation  data { trade_id symbol quantity notional }  ts_cursor } }"""
COLUMNS = ("trade_id", "symbol", "quantity", "notional")
_WAIT = 60.0


def open_database() -> sqlite3.Connection:
    FOLDER.mkdir(exist_ok=True)
    database = sqlite3.connect(KEPT)
    database.execute(
        "CREATE TABLE IF NOT EXISTS large_trades (trade_id TEXT PRIMARY KEY, symbol, quantity, notional)"
    )
    database.execute(
        "CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY, cursor TEXT, changes INTEGER)"
    )
    database.execute("INSERT OR IGNORE INTO place VALUES (1, NULL, 0)")
    database.commit()
    return database


def find_cursor(database: sqlite3.Connection) -> str | None:
    """The last cursor. None before the first: then the rows come as they are."""
    (cursor,) = database.execute("SELECT cursor FROM place").fetchone()
    return None if cursor is None else str(cursor)


def apply(database: sqlite3.Connection, update: dict[str, Any]) -> None:
    """Store a change and its cursor, both or neither."""
    row, cursor = update["data"], update["ts_cursor"]
    with database:
        if update["operation"] == "DELETE":
            database.execute("DELETE FROM large_trades WHERE trade_id = ?", (row["trade_id"],))
        else:
            values = [row[column] for column in COLUMNS]
            database.execute("INSERT OR REPLACE INTO large_trades VALUES (?, ?, ?, ?)", values)
        database.execute("UPDATE place SET cursor = coalesce(?, cursor), changes = changes + 1", (cursor,))


def follow() -> None:
    """Follow until the subscriber is stopped. Whoever cuts the connection, it begins after its cursor."""
    with closing(open_database()) as database:
        while RUNNING.exists():
            if (cursor := find_cursor(database)) is None:
                with database:  # the rows come again from the first
                    database.execute("DELETE FROM large_trades")
            try:
                with connect(f"ws://{HERE}:{PORT}/graphql", subprotocols=[PROTOCOL]) as socket:
                    socket.send('{"type": "connection_init"}')
                    socket.recv()
                    payload = {"query": QUERY, "variables": {"after": cursor}}
                    socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
                    take(socket, database)
            except (OSError, websockets.ConnectionClosed) as error:
                print(f"cut off: {error}", flush=True)
                time.sleep(0.2)


def take(socket: ClientConnection, database: sqlite3.Connection) -> None:
    while RUNNING.exists():
        try:
            message = json.loads(socket.recv(timeout=0.2))
        except TimeoutError:
            continue
        if message["type"] == "next":
            apply(database, message["payload"]["data"]["large_trades"])
        else:
            print(message, flush=True)
            time.sleep(1)
            return


def start() -> int:
    FOLDER.mkdir(exist_ok=True)
    RUNNING.touch()
    with LOG.open("a", encoding="utf-8") as log:
        subprocess.Popen(
            [sys.executable, __file__, "follow"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    print("The subscriber follows large_trades.")
    return 0


def stop() -> int:
    RUNNING.unlink(missing_ok=True)
    time.sleep(0.5)
    print("The subscriber has left.")
    return 0


def show(expected: int) -> int:
    """Print what it has once it has been told of so many changes."""
    until = time.monotonic() + _WAIT
    with closing(open_database()) as database:
        changes = -1
        while changes < expected and time.monotonic() < until:
            time.sleep(0.05)
            (changes,) = database.execute("SELECT changes FROM place").fetchone()
        rows = database.execute("SELECT * FROM large_trades ORDER BY trade_id").fetchall()
    lines = [COLUMNS, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(f"{changes} changes")
    return 0 if changes >= expected else 1


def main(arguments: list[str]) -> int:
    match arguments:
        case ["start"]:
            return start()
        case ["stop"]:
            return stop()
        case ["show", changes] if changes.isdecimal():
            return show(int(changes))
        case ["follow"]:
            follow()
            return 0
        case _:
            print("usage: python subscriber.py start|show CHANGES|stop", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
