"""Load the project and report every mistake, each with its file, its line and what to do. Reads no data."""

import argparse
from pathlib import Path

from strandline.app.check import check
from strandline.model.errors import ProjectError
from strandline.model.node import Project
from strandline.pages.documents.check import mistakes_document, project_document
from strandline.pages.wording import plural

from .output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None but those of every verb."""


def run(call: argparse.Namespace) -> int:
    try:
        project = check(Path(call.project))
    except ProjectError as error:
        if call.output != "table":
            emit(call.output, "check", mistakes_document(error), "mistakes", str)
        raise
    emit(call.output, "check", project_document(project), "nodes", lambda: render(project))
    return 0


def render(project: Project) -> str:
    parts = [plural(count, word) for word, count in project.declared.items()]
    return f"`{project.name}` is valid: {', '.join(parts)}."
