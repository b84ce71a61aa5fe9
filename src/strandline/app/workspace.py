"""A project with its catalog and lake, opened."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.catalog import Catalog, open_catalog
from strandline.declare import load_project
from strandline.dispatch.failpoints import reach
from strandline.dispatch.observe import observe
from strandline.lake.location import Lake
from strandline.model.errors import OutsideError
from strandline.model.node import Project
from strandline.plan import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    project: Project
    catalog: Catalog
    lake: Lake

    def observe(self) -> Observed:
        return observe(self.project, self.catalog, self.lake)


@contextmanager
def open_workspace(
    folder: Path, environ: Mapping[str, str] | None = None, project: Project | None = None
) -> Iterator[Workspace]:
    """Load the project, unless that has been done, and open its catalog and lake. Starts no Spark."""
    project = project or load_project(folder, os.environ if environ is None else environ)
    lake = Lake(root=project.settings.lake)
    require_readable(lake)
    catalog = open_catalog(project.settings.catalog, reach)
    try:
        yield Workspace(project=project, catalog=catalog, lake=lake)
    finally:
        catalog.close()


def require_readable(lake: Lake) -> None:
    """Refuse a lake that this user may not read and write, before anything is done with it."""
    folder = lake.local
    if folder is None:
        return
    nearest = folder
    while not nearest.exists():
        nearest = nearest.parent
    if (
        not nearest.is_dir()
        or not os.access(nearest, os.R_OK | os.X_OK)
        or (nearest == folder and not os.access(folder, os.W_OK))
    ):
        raise OutsideError(
            f"The lake `{folder}` cannot be used: `{nearest}` is not a folder this user may read and write.",
            remedy="Correct `settings.lake` (or STRANDLINE_LAKE), or the folder's permissions.",
            slug="lake-unreadable",
        )
