"""Load the project and report every mistake, each with its file, its line and what to do. Reads no data."""

import argparse
from pathlib import Path

from strandline.app.check import check
from strandline.model.errors import Mistake, ProjectError
from strandline.model.node import Node, Project
from strandline.pages.wording import plural

from .output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None but those of every verb."""


def run(call: argparse.Namespace) -> int:
    try:
        project = check(Path(call.project))
    except ProjectError as error:
        if call.output != "table":
            emit(
                call.output,
                "check",
                {"project": None, "nodes": [], "mistakes": [_mistake(m) for m in error.mistakes]},
                "mistakes",
                str,
            )
        raise
    document = {
        "project": project.name,
        "nodes": [_node(n) for n in project.nodes],
        "mistakes": [],
    }
    emit(call.output, "check", document, "nodes", lambda: render(project))
    return 0


def render(project: Project) -> str:
    parts = [plural(count, word) for word, count in project.declared.items()]
    return f"`{project.name}` is valid: {', '.join(parts)}."


def _mistake(mistake: Mistake) -> dict[str, object]:
    file, line = (mistake.place.file, mistake.place.line) if mistake.place else (None, None)
    return {"file": file, "line": line, "slug": mistake.slug, "what": mistake.what, "remedy": mistake.remedy}


def _node(node: Node) -> dict[str, object]:
    return {
        "node": node.name,
        "kind": node.kind,
        "inputs": [i.dataset for i in node.inputs],
        "config": node.config.hash,
    }
