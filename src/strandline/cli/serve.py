"""Serve the project: HTTP, GraphQL, metrics, a warm Spark that does the work, and the deliveries.

On a lake of plain files the server is its one writer. `run`, `backfill` and the others hand their request to
it, and print what it did. Ctrl-C or SIGTERM ends it within 30 seconds. A request that is being executed then
waits for the next server.
"""

import argparse
import os
import re
from datetime import timedelta
from pathlib import Path

from . import interrupts
from .output import say
from .quiet import quiet_spark

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="H", default="127.0.0.1", help="by default 127.0.0.1")
    parser.add_argument(
        "--port", metavar="N", type=_port, default=8321, help="by default 8321; 0 takes a free one"
    )
    parser.add_argument(
        "--no-dispatch", action="store_true", help="answer calls only: do no work and send no deliveries"
    )
    parser.add_argument(
        "--idle-stop",
        metavar="T",
        type=_duration,
        help="end when nobody has asked for anything for T, for example 30m",
    )


def run(call: argparse.Namespace) -> int:
    from strandline.serve.server import ServeOptions, serve

    interrupts.allow(interrupts.SERVER_GRACE)
    interrupts.say_at_end("The server has ended. What was committed is kept.")
    options = ServeOptions(
        folder=Path(call.project),
        host=call.host,
        port=call.port,
        dispatch=not call.no_dispatch,
        idle_stop=call.idle_stop,
    )
    serve(options, lambda address: say(f"Serving {address} (process {os.getpid()})"), quiet_spark)
    # Everything is given back. What still waits for Spark would only be waited for.
    interrupts.leave(0)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"`{text}` is not a port")
    return int(text)


def _duration(text: str) -> timedelta:
    parts = re.fullmatch(r"([0-9]+)\s*([smhd])", text.strip())
    if parts is None or not int(parts[1]):
        raise argparse.ArgumentTypeError(f"`{text}` is not a time such as 90s, 30m or 2h")
    return timedelta(**{_UNITS[parts[2]]: int(parts[1])})
