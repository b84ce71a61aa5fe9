"""A project and its lake, for verbs that only read what is published.

They need no catalog, and so start faster.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from strandline.declare import load_project
from strandline.lake.location import Lake
from strandline.model.node import Project


class Readable(Protocol):
    """What such a verb needs. A whole `Workspace` has it too."""

    @property
    def project(self) -> Project: ...

    @property
    def lake(self) -> Lake: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    project: Project
    lake: Lake


def open_reading(folder: Path, environ: Mapping[str, str] | None = None) -> Reading:
    """Load the project. Opens no catalog and starts no Spark."""
    project = load_project(folder, os.environ if environ is None else environ)
    return Reading(project=project, lake=Lake(root=project.settings.lake))
