"""The command line beside a server: its request goes to the server that holds the lake.

The answer is streamed, so that progress is shown as if the work were done here. Uses the standard library
alone, because a verb has to start quickly.
"""

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from strandline.lake.location import Lake
from strandline.lake.lock import find_server, read_server
from strandline.model.errors import CallError, OutsideError, StrandlineError

from .reading import open_reading
from .watching import Watcher, replay
from .work import WORK, Doing, from_wire, to_wire
from .workspace import open_workspace

PATH = "/v1/handover"
_PATIENCE = 20.0
"""Seconds that a server has to start or to end, before its lake counts as held by somebody."""


class Refusal(StrEnum):
    """Why a server does not take the request of a command line."""

    KEY = "handover-key"
    CALL = "handover-call"
    VERSION = "other-version"
    PROJECT = "other-project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What the holder file says about the server of a lake."""

    address: str
    key: str
    project: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """The server has the request. `recorded`: it goes on if this process ends."""

    request: str
    recorded: bool


def do_work(
    folder: Path,
    verb: str,
    request: object,
    watcher: Watcher,
    handed_over: Callable[[HandedOver], None] = lambda _: None,
) -> Any:
    """Do the work of a verb: here, or in the server that holds the lake of the project."""
    reading = open_reading(folder)
    server = find_serving(reading.lake)
    if server is not None:
        _refuse_other(server, reading.project.folder)
        return hand_over(server, verb, request, watcher, handed_over)
    with open_workspace(folder, project=reading.project) as workspace:
        return WORK[verb].do(Doing(workspace=workspace, watcher=watcher), request)


def find_serving(lake: Lake) -> Server | None:
    """The server that holds the lake. One that is just starting is waited for."""
    folder = lake.local
    if folder is None:
        return None
    until = time.monotonic() + _PATIENCE
    while find_server(folder) is not None:
        said = read_server(folder)
        if said is not None:
            return Server(
                address=said.get("address", ""),
                key=said.get("key", ""),
                project=said.get("project", ""),
                version=said.get("version", ""),
            )
        if not os.access(folder / "_strandline.holder", os.R_OK) and (folder / "_strandline.holder").exists():
            raise OutsideError(
                f"The lake `{folder}` is served by a process of another user.",
                remedy="Ask the server over HTTP with an access key, or run this as the server's user.",
                slug="server-of-another-user",
            )
        if time.monotonic() > until:
            return None
        time.sleep(0.1)
    return None


def _refuse_other(server: Server, folder: str) -> None:
    if server.version != version("strandline"):
        raise OutsideError(
            f"The lake is served by Strandline {server.version}, and this is {version('strandline')}.",
            remedy="Restart `strandline serve`, so that both are of one version.",
            slug="other-version",
        )
    if server.project != folder:
        raise CallError(
            f"The lake is served for the project in `{server.project}`, and this one is in `{folder}`.",
            remedy="Call from that project, or stop its server. A lake belongs to one project.",
            slug="other-project",
        )


def hand_over(
    server: Server,
    verb: str,
    request: object,
    watcher: Watcher,
    handed_over: Callable[[HandedOver], None] = lambda _: None,
) -> Any:
    """Have the server do it. The callbacks of `watcher` are called while it does."""
    taken: HandedOver | None = None
    try:
        for line in _stream(server, {"verb": verb, "request": to_wire(request)}):
            if "request" in line:
                taken = HandedOver(request=line["request"], recorded=line["recorded"])
                handed_over(taken)
            elif "happened" in line:
                replay(from_wire(line["happened"]), watcher)
            elif "error" in line:
                raise from_wire(line["error"])
            elif "outcome" in line:
                return from_wire(line["outcome"])
    except (OSError, http.client.HTTPException) as error:
        raise _lost(server, taken) from error
    raise _lost(server, taken)


def _stream(server: Server, body: dict[str, object]) -> Iterator[dict[str, Any]]:
    """The lines of the server's answer."""
    host, _, port = server.address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port))
    document = {"version": version("strandline"), "project": server.project, **body}
    headers = {
        "Host": f"localhost:{port}",
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
    }
    try:
        connection.request("POST", PATH, json.dumps(document).encode(), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise _refused(response.status, response.read())
        while line := response.readline():
            if not line.endswith(b"\n"):
                return  # the server ended within a line
            yield json.loads(line)
    finally:
        connection.close()


def _refused(status: int, body: bytes) -> StrandlineError:
    try:
        error = json.loads(body)["error"]
        what = f"{error['message']} [{error['slug']}]"
    except (ValueError, KeyError, TypeError):
        what = f"it answered {status}"
    return OutsideError(
        f"The server that holds the lake does not take this request: {what}.",
        remedy="Restart `strandline serve`, and look at its log.",
        slug="handover-refused",
    )


def _lost(server: Server, taken: HandedOver | None) -> StrandlineError:
    if taken is not None and taken.recorded:
        remedy = (
            f"The request `{taken.request}` is recorded: the next `strandline serve` executes it, once."
            " What was committed is kept."
        )
    else:
        remedy = "Call again: without a server, it is done here."
    return OutsideError(
        f"The server at {server.address} ended before it had answered.", remedy=remedy, slug="server-lost"
    )
