"""A project that was loaded, or its mistakes."""

from strandline.model.errors import Mistake, ProjectError
from strandline.model.node import Node, Project


def project_document(project: Project) -> dict[str, object]:
    return {"project": project.name, "nodes": [_node(n) for n in project.nodes], "mistakes": []}


def mistakes_document(error: ProjectError) -> dict[str, object]:
    return {"project": None, "nodes": [], "mistakes": [_mistake(m) for m in error.mistakes]}


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
