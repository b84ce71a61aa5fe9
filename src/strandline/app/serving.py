"""What a server needs besides the verbs: its hold on the lake, a look at files and clock, a warm Spark."""

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from strandline.declare import load_project
from strandline.dispatch.observe import list_received
from strandline.lake.lock import served_lake, write_holder
from strandline.lake.memory import return_free_memory
from strandline.model.errors import CallError, OutsideError, StrandlineError
from strandline.model.node import Project
from strandline.model.plan import Plan

from .clock import now
from .planning import RunRequest, make_plan
from .run import open_lake
from .workspace import Workspace

_WATCHED = (".yaml", ".yml", ".sql", ".py")
_MOST_WATCHED = 20_000
"""At most this many files and folders of a project are looked at for changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineKey:
    """How the command line of this machine reaches a server, and proves that it may."""

    address: str
    key: str


@contextmanager
def holding_lake(workspace: Workspace) -> Iterator[None]:
    """Hold a lake with one writer for as long as the server lives, before Spark starts."""
    with served_lake(workspace.lake, _moment()):
        yield


def make_key() -> str:
    """A key for the command line of this machine. It is new with each start and is stored nowhere else."""
    return secrets.token_urlsafe(32)


def announce(workspace: Workspace, machine: MachineKey) -> None:
    """Say in the lake where the server is. Only the owner of the lake's folder can read it."""
    folder = workspace.lake.local
    if folder is not None:
        server = {
            "address": machine.address,
            "key": machine.key,
            "project": workspace.project.folder,
            "version": version("strandline"),
        }
        write_holder(folder, _moment(), server)


def server_name() -> str:
    """The name under which this process claims requests."""
    return f"{socket.gethostname()}:{os.getpid()}/{_moment()}"


def _moment() -> str:
    return now().isoformat(timespec="seconds")


def warm_up(workspace: Workspace) -> None:
    """Start Spark, or keep the one that runs, and hold the lake with it."""
    open_lake(workspace, now())


def stop_jobs() -> None:
    """Cancel what Spark is doing. Whatever waits for it fails."""
    from strandline.spark.session import cancel_jobs

    cancel_jobs()


def find_tick(workspace: Workspace) -> datetime:
    """The `as_of` of served runs: the newest whole multiple of `settings.serve.clock`."""
    return floor(now(), workspace.project.settings.serve.clock)


def floor(at: datetime, step: timedelta) -> datetime:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return start + (at - start) // step * step


def look_at_sources(workspace: Workspace) -> Mapping[str, object]:
    """By source: its files as they are now. Two looks that are equal found nothing new."""
    project = workspace.project
    return list_received(project, workspace.lake, frozenset(node.name for node in project.nodes))


def plan_served(workspace: Workspace, as_of: datetime) -> Plan:
    """What a served run would do."""
    return make_plan(workspace, served_run(as_of))[0]


def served_run(as_of: datetime, nodes: frozenset[str] | None = None) -> RunRequest:
    """A run that nobody asked for. It never turns a clock back."""
    return RunRequest(as_of=as_of, goes_back=False, nodes=None if nodes is None else tuple(sorted(nodes)))


def look_at_project(folder: str, lake: Path | None) -> frozenset[tuple[str, int, int]]:
    """The files that a project may be made of, as they are now. Hidden folders and the lake are left out."""
    found, seen = set(), 0
    for root, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith((".", "__")) and Path(root, f) != lake]
        seen += len(folders) + len(files)
        for name in files:
            if name.endswith(_WATCHED):
                try:
                    status = Path(root, name).stat()
                except OSError:
                    continue
                found.add((str(Path(root, name)), status.st_size, status.st_mtime_ns))
        if seen > _MOST_WATCHED:
            break
    return frozenset(found)


def reload_project(workspace: Workspace, environ: Mapping[str, str]) -> Workspace:
    """The workspace with the project as its files are now. Raises what is wrong with them."""
    project = load_project(Path(workspace.project.folder), environ)
    _refuse_moved(workspace.project, project)
    return replace(workspace, project=project)


def _refuse_moved(before: Project, now_: Project) -> None:
    for name in ("lake", "catalog", "spark_master", "spark_conf"):
        if getattr(before.settings, name) != getattr(now_.settings, name):
            raise CallError(
                f"`settings.{name.replace('_', '.')}` was changed while the project is served.",
                remedy="Restart `strandline serve`: this setting is read when it starts.",
                slug="restart-to-apply",
            )


def as_told(error: BaseException) -> StrandlineError:
    """Any error, as one that says what is known."""
    if isinstance(error, StrandlineError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return OutsideError(
        f"{type(error).__name__}: {lines[0] if lines else 'no more is known'}",
        remedy="Set STRANDLINE_DEBUG=1 to see where.",
        slug="unexpected",
    )


def tidy() -> None:
    """What a server does now and then, so that it does not grow."""
    return_free_memory()
