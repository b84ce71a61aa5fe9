"""`doctor --adopt`: accept what someone else wrote to tables, instead of rebuilding them."""

from collections.abc import Sequence

from strandline.catalog import audit
from strandline.dispatch.adopt import Adopted, adopt, nothing_to_adopt, require_adoptable
from strandline.dispatch.run import Heartbeat
from strandline.model.commits import CommitSummary
from strandline.model.node import Node
from strandline.model.plan import Plan
from strandline.plan import Observed
from strandline.plan.gaps import find_unknown
from strandline.plan.selection import get_nodes

from .clock import now
from .planning import RunRequest
from .run import make_desk, open_lake, run_name
from .workspace import Workspace


def adopt_foreign(workspace: Workspace, names: Sequence[str], *, reason: str) -> tuple[Adopted, ...]:
    """Adopt what NAMES mean, or every table that someone else wrote to. If one cannot be adopted, none is."""
    observed = workspace.observe()
    nodes = _find_written(workspace, observed, names)
    for node in nodes:
        require_adoptable(workspace.lake, node, [c.version for c in _foreign(observed, node)])
    at = now()
    desk = make_desk(
        workspace, observed, Plan(as_of=at, tasks=()), run_name(at), open_lake(workspace, at), RunRequest()
    )
    done = []
    with Heartbeat(desk):
        for node in nodes:
            record = observed.view.nodes.get(node.name)
            done.append(adopt(desk, node, record.table_version if record and record.table_id else -1))
            details = {
                "dataset": node.name,
                "versions": list(done[-1].versions),
                "table_version": done[-1].table_version,
                "reason": reason,
            }
            audit(workspace.catalog, "adopt", details)
    return tuple(done)


def _find_written(workspace: Workspace, observed: Observed, names: Sequence[str]) -> list[Node]:
    project = workspace.project
    written = [n for n in project.nodes if _foreign(observed, n)]
    for name in names:
        if not any(n.name in get_nodes(project, name) for n in written):
            raise nothing_to_adopt(name)
    if not written:
        raise nothing_to_adopt("")
    nodes = {n for name in names for n in get_nodes(project, name)}
    return [n for n in written if not names or n.name in nodes]


def _foreign(observed: Observed, node: Node) -> tuple[CommitSummary, ...]:
    return find_unknown(observed.view.nodes.get(node.name), observed.tables.get(node.name))
