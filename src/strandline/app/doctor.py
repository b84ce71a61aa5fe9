"""`doctor`: what is wrong here and what to do. Changes nothing and starts no Spark."""

import os
import shutil
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from strandline.catalog import open_catalog
from strandline.declare import load_project
from strandline.lake.jars import find_jars, find_java_home, jar_folder
from strandline.lake.location import Lake
from strandline.lake.lock import LOCK_FILE, read_holder
from strandline.model.errors import StrandlineError
from strandline.model.node import Project
from strandline.model.plan import Cause, Plan, Status
from strandline.plan import Observed

from .planning import RunRequest, make_plan
from .workspace import Workspace

LITTLE_ROOM = 1_000_000_000
"""Bytes free on the lake's disk below which a run may well not end."""


class Result(StrEnum):
    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at. `wrong` needs action, a `note` does not."""

    check: str
    result: Result
    what: str
    remedy: str = ""


def examine(folder: Path, environ: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Every finding. What cannot be looked at because something before it is wrong is left out."""
    return tuple(_examine(folder, os.environ if environ is None else environ))


def _examine(folder: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield from _examine_spark()
    try:
        project = load_project(folder, environ)
    except StrandlineError as error:
        yield Finding(
            check="project", result=Result.WRONG, what=str(error), remedy="Correct the project; `strandline check` says the same."
        )
        return
    yield Finding(check="project", result=Result.OK, what=f"{project.name}, {len(project.nodes)} nodes")
    lake = Lake(root=project.settings.lake)
    usable = True
    for finding in _examine_lake(lake):
        usable &= finding.result is not Result.WRONG
        yield finding
    try:
        catalog = open_catalog(project.settings.catalog)
    except StrandlineError as error:
        yield Finding(check="catalog", result=Result.WRONG, what=error.what, remedy=error.remedy)
        return
    try:
        yield Finding(check="catalog", result=Result.OK, what=catalog.shown)
        if usable:
            yield from _examine_tables(Workspace(project=project, catalog=catalog, lake=lake))
    except StrandlineError as error:
        yield Finding(check="tables", result=Result.WRONG, what=error.what, remedy=error.remedy)
    finally:
        catalog.close()


def _examine_spark() -> Iterator[Finding]:
    home = find_java_home()
    if home is None:
        remedy = "Install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        yield Finding(check="java", result=Result.WRONG, what="There is no Java that Spark can run on.", remedy=remedy)
    else:
        yield Finding(check="java", result=Result.OK, what=str(home))
    if find_jars() is None:
        remedy = f"Connect to the network once and run `{sys.executable} -m strandline.lake.jars`."
        yield Finding(check="jars", result=Result.WRONG, what=f"Delta's jars are not in {jar_folder()}.", remedy=remedy)
    else:
        yield Finding(check="jars", result=Result.OK, what=str(jar_folder()))


def _examine_lake(lake: Lake) -> Iterator[Finding]:
    folder = lake.local
    if folder is None:
        yield Finding(check="lake", result=Result.OK, what=lake.root)
        return
    nearest = folder
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
        remedy = "Correct `settings.lake` (or STRANDLINE_LAKE), or the folder's permissions."
        yield Finding(check="lake", result=Result.WRONG, what=f"This user may not read and write `{nearest}`.", remedy=remedy)
        return
    yield Finding(check="lake", result=Result.OK, what=str(folder) if nearest == folder else f"{folder}, made by the first run")
    if (free := shutil.disk_usage(nearest).free) < LITTLE_ROOM:
        yield Finding(
            check="disk", result=Result.WRONG, what=f"Only {free // 1_000_000} MB are free for the lake.", remedy="Free some room."
        )
    holder = find_lock_holder(folder)
    if holder is not None:
        yield Finding(check="writer", result=Result.NOTE, what=f"The lake is being written by {read_holder(folder)} (JVM {holder}).")
    elif (staging := folder / "_staging").is_dir() and (left := sorted(p.name for p in staging.iterdir())):
        yield Finding(
            check="staging", result=Result.NOTE, what=f"{len(left)} runs left files in {staging}.", remedy="The next run removes them."
        )


def find_lock_holder(folder: Path) -> int | None:
    """The process whose JVM holds the lake's lock. It is asked for, not tried: trying would take it from a run that starts just now."""
    if sys.platform != "linux" or not (folder / LOCK_FILE).exists():
        return None
    import fcntl

    # struct flock: type, whence, start, length, pid
    layout = "hhqqi"
    with (folder / LOCK_FILE).open("rb") as lock:
        asked = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(layout, fcntl.fcntl(lock, fcntl.F_GETLK, asked)[: struct.calcsize(layout)])
    return None if kind == fcntl.F_UNLCK else int(pid)


def _examine_tables(workspace: Workspace) -> Iterator[Finding]:
    plan, observed = make_plan(workspace, RunRequest())
    before = list(_find_unrecorded(workspace.project, observed))
    yield from before
    yield from _find_gaps(plan)
    for held in plan.frozen:
        yield Finding(check="frozen", result=Result.WRONG, what=f"`{held.node}` is frozen: {held.reason}.")
    for held in plan.stale:
        yield Finding(check="stale", result=Result.NOTE, what=f"`{held.node}` is stale: {held.reason}.")
    failed = list(_find_failed(plan, observed))
    yield from failed
    if not (before or failed or plan.frozen):
        yield Finding(check="tables", result=Result.OK, what=f"{len(observed.tables)} tables, as the catalog has them")


def _find_unrecorded(project: Project, observed: Observed) -> Iterator[Finding]:
    """Commits past what the catalog knows: someone else's, or ours from a run that did not end."""
    for node in project.nodes:
        table, record = observed.tables.get(node.name), observed.view.nodes.get(node.name)
        if table is None:
            continue
        known = record.table_version if record else -1
        later = table.commits_after(known)
        foreign = [c for c in later if c.foreign]
        if foreign:
            told = ", ".join(f"{c.version} ({c.operation})" for c in foreign)
            remedy = (
                "What was received must not be changed: restore the table to the version before."
                if not node.inputs
                else "The next run rebuilds it from its inputs."
            )
            yield Finding(
                check="foreign",
                result=Result.WRONG,
                what=f"`{node.name}` has commits that are not Strandline's: version {told}.",
                remedy=remedy,
            )
        if ours := [c for c in later if c.metadata is not None]:
            what = f"`{node.name}` has {len(ours)} commits of ours that the catalog does not know: a run did not end."
            yield Finding(check="unsettled", result=Result.NOTE, what=what, remedy="The next run settles it.")


def _find_gaps(plan: Plan) -> Iterator[Finding]:
    for task in plan.tasks:
        if task.cause is Cause.GAP:
            remedy = "The next run rebuilds it."
            yield Finding(
                check="gap", result=Result.NOTE, what=f"`{task.node}` cannot go on from where it was: {task.reason}.", remedy=remedy
            )


def _find_failed(plan: Plan, observed: Observed) -> Iterator[Finding]:
    behind = {task.node for task in plan.tasks}
    for record in observed.view.nodes.values():
        if record.dataset in behind and record.last_status in (Status.FAILED, Status.GUARDED):
            yield Finding(check=record.last_status, result=Result.WRONG, what=f"`{record.dataset}`: {record.last_error}")
