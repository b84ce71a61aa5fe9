"""`check`: load the project and say what it declares. Opens neither catalog nor lake."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.declare import load_project
from strandline.model.node import NodeKind, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    project: Project

    @property
    def counts(self) -> Mapping[NodeKind, int]:
        return Counter(node.kind for node in self.project.nodes)


def check(folder: Path, environ: Mapping[str, str] | None = None) -> Checked:
    """The project, or a ProjectError with every mistake."""
    return Checked(project=load_project(folder, os.environ if environ is None else environ))
