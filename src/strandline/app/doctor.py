"""`doctor`: what is wrong here and what to do. Changes nothing and starts no Spark."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from strandline.catalog import Catalog, find_damage, find_file, open_catalog, require_writable
from strandline.declare import load_project
from strandline.lake.location import Lake
from strandline.lake.lock import find_lock_holder, read_holder
from strandline.lake.log import list_versions
from strandline.model.errors import OutsideError, StrandlineError
from strandline.model.node import Project
from strandline.spark.jars import find_jars, find_java_home, jar_folder

from .finding import Finding, Result
from .table_health import examine_tables, find_damaged
from .workspace import Workspace

LITTLE_ROOM = 1_000_000_000
"""With fewer free bytes on the lake's disk a run may fail."""
PATIENCE = 2
"""Seconds to wait for a catalog that another process has locked."""


def examine(
    folder: Path, environ: Mapping[str, str] | None = None, *, deep: bool = False
) -> tuple[Finding, ...]:
    """Every finding. What cannot be examined because something before it is wrong is left out.

    `deep` reads every live file.
    """
    return tuple(_examine(folder, os.environ if environ is None else environ, deep))


def _examine(folder: Path, environ: Mapping[str, str], deep: bool) -> Iterator[Finding]:
    yield from _examine_spark()
    try:
        project = load_project(folder, environ)
    except StrandlineError as error:
        yield Finding(
            check="project",
            result=Result.WRONG,
            what=str(error),
            remedy="Correct the project; `strandline check` says the same.",
        )
        return
    yield Finding(check="project", result=Result.OK, what=f"{project.name}, {len(project.nodes)} nodes")
    lake = Lake(root=project.settings.lake)
    usable = True
    for finding in _examine_lake(lake):
        usable &= finding.check != "lake" or finding.result is not Result.WRONG
        yield finding
    catalog, finding, known = _open_catalog(project, lake)
    yield finding
    try:
        workspace = Workspace(project=project, catalog=catalog, lake=lake)
        if usable and known:
            yield from examine_tables(workspace, deep=deep)
        elif usable:
            yield from find_damaged(workspace, deep=deep)
    except StrandlineError as error:
        yield Finding(check="tables", result=Result.WRONG, what=error.what, remedy=error.remedy)
    finally:
        catalog.close()


def _open_catalog(project: Project, lake: Lake) -> tuple[Catalog, Finding, bool]:
    """The catalog, the finding about it, and whether it is usable.

    In place of one that cannot be used, or that does not exist, there is an empty one in memory: an
    examination must not create it.
    """
    url = project.settings.catalog
    file = find_file(url)
    if file is not None and not file.exists():
        tables = any(list_versions(lake.table(n.name)) for n in project.nodes)
        what = f"There is no catalog at {file}" + (
            ", and there are tables." if tables else " yet; the first run creates it."
        )
        return (
            open_catalog("sqlite://"),
            Finding(check="catalog", result=Result.NOTE if tables else Result.OK, what=what),
            True,
        )
    catalog = None
    try:
        # A person who asks what is wrong should not wait for a lock as long as a run does.
        catalog = open_catalog(
            f"{url}{'&' if '?' in url else '?'}timeout={PATIENCE}" if file is not None else url
        )
        if damage := find_damage(catalog):
            raise OutsideError(
                f"Catalog {catalog.shown} is damaged: {damage}.", remedy="Run `strandline rebuild-catalog`."
            )
        require_writable(catalog)
    except StrandlineError as error:
        wrong = Finding(check="catalog", result=Result.WRONG, what=error.what, remedy=error.remedy)
        if catalog is not None and "locked" in error.what:
            return catalog, wrong, True  # it can still be read
        if catalog is not None:
            catalog.close()
        return open_catalog("sqlite://"), wrong, False
    return catalog, Finding(check="catalog", result=Result.OK, what=catalog.shown), True


def _examine_spark() -> Iterator[Finding]:
    home = find_java_home()
    if home is None:
        remedy = (
            "Install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )
        yield Finding(
            check="java", result=Result.WRONG, what="There is no Java that Spark can run on.", remedy=remedy
        )
    else:
        yield Finding(check="java", result=Result.OK, what=str(home))
    if find_jars() is None:
        remedy = f"Connect to the network once and run `{sys.executable} -m strandline.spark.jars`."
        yield Finding(
            check="jars", result=Result.WRONG, what=f"Delta's jars are not in {jar_folder()}.", remedy=remedy
        )
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
        yield Finding(
            check="lake",
            result=Result.WRONG,
            what=f"This user may not read and write `{nearest}`.",
            remedy=remedy,
        )
        return
    yield Finding(
        check="lake",
        result=Result.OK,
        what=str(folder) if nearest == folder else f"{folder}, created by the first run",
    )
    if (free := shutil.disk_usage(nearest).free) < LITTLE_ROOM:
        yield Finding(
            check="disk",
            result=Result.WRONG,
            what=f"Only {free // 1_000_000} MB are free for the lake.",
            remedy="Free some space.",
        )
    holder = find_lock_holder(folder)
    if holder is not None:
        yield Finding(
            check="writer",
            result=Result.NOTE,
            what=f"The lake is being written by {read_holder(folder)} (JVM {holder}).",
        )
    elif (staging := folder / "_staging").is_dir() and (left := sorted(p.name for p in staging.iterdir())):
        yield Finding(
            check="staging",
            result=Result.NOTE,
            what=f"{len(left)} runs left files in {staging}.",
            remedy="The next run removes them.",
        )
