"""`explain`: which strategy a change of each input leads to, and why. Starts no Spark."""

from strandline.model.explained import Explained
from strandline.plan.explain import explain_node
from strandline.plan.selection import get_nodes

from .planning import RunRequest, make_plan
from .workspace import Workspace


def explain(workspace: Workspace, name: str) -> tuple[Explained, ...]:
    """Each node that a name means."""
    nodes = get_nodes(workspace.project, name)
    plan, observed = make_plan(workspace, RunRequest())
    return tuple(explain_node(workspace.project.get(n), plan, observed) for n in nodes)
