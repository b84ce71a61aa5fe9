"""One dataset: its state, what it is made of, and the columns of its table. Starts no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.node import Node
from strandline.model.statuses import DatasetStatus
from strandline.plan.selection import get_nodes

from .status import read_status
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    status: DatasetStatus
    node: Node
    columns: Mapping[str, str]
    """By name: the type. Empty if it has never been built."""


def describe_dataset(workspace: Workspace, name: str) -> Described:
    """The dataset of this name in SQL. A job's name means its output."""
    project = workspace.project
    node = project.get(project.tables[name] if name in project.tables else get_nodes(project, name)[-1])
    table = workspace.observe().tables.get(node.name)
    types = dict(table.columns) if table else {}
    shown = [column for column in node.in_order(types) if column not in METADATA_COLUMNS]
    (status,) = (s for s in read_status(workspace, node.name)[0] if s.dataset == node.name)
    return Described(status=status, node=node, columns={column: types[column] for column in shown})
