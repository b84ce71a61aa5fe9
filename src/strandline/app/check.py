"""`check`: load the project and say what it declares. Opens neither catalog nor lake."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.declare import load_project
from strandline.model.node import NodeKind, Project
from strandline.model.project import Chain, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    project: Project

    @property
    def counts(self) -> Mapping[NodeKind, int]:
        """What was declared, by kind. A dataset that follows a chain is kept by a job that nobody wrote: it counts with its chain."""
        chains = {node.definition.place for node in self.project.nodes if isinstance(node.definition, Chain)}
        written = (n for n in self.project.nodes if not (isinstance(n.definition, Job) and n.definition.place in chains))
        return Counter(node.kind for node in written)


def check(folder: Path, environ: Mapping[str, str] | None = None) -> Checked:
    """The project, or a ProjectError with every mistake."""
    return Checked(project=load_project(folder, os.environ if environ is None else environ))
