"""`check`: load the project and report what it declares. Opens neither catalog nor lake."""

import os
from collections.abc import Mapping
from pathlib import Path

from strandline.declare import load_project
from strandline.model.node import Project


def check(folder: Path, environ: Mapping[str, str] | None = None) -> Project:
    """The project, or a ProjectError with every mistake."""
    return load_project(folder, os.environ if environ is None else environ)
