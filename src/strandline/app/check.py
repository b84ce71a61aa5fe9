"""`check`: load the project and say what it declares. Opens neither catalog nor lake."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.declare import load_project
from strandline.model.node import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    project: Project

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of each were declared. What was not declared by itself, as the quarantine of a dataset, is not counted."""
        counted = Counter(node.traits.counted_as for node in self.project.nodes if node.traits.counted_as)
        always = {"source": 0, "fact dataset": 0}
        return {
            **always,
            **dict(sorted((word, n) for word, n in counted.items() if word != "job")),
            "job": counted["job"],
        }


def check(folder: Path, environ: Mapping[str, str] | None = None) -> Checked:
    """The project, or a ProjectError with every mistake."""
    return Checked(project=load_project(folder, os.environ if environ is None else environ))
