"""Whether what a query read is current: for outputs of timelines, and for what is computed from them."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from strandline.lake.heads import count_heads
from strandline.lake.location import Lake
from strandline.lake.log import read_entries
from strandline.lake.state import find_state
from strandline.lake.table import open_table
from strandline.model.catalog_records import CatalogView
from strandline.model.node import Lookup, Node, Project
from strandline.model.timeline import KeyStatus
from strandline.plan.draft import pending
from strandline.plan.selection import upstream

from .query import KnownAt
from .reading import Readable


class ReprocessingStatus(StrEnum):
    CURRENT = "CURRENT"
    IN_PROGRESS = "IN_PROGRESS"
    """Keys wait for a batch, or an input has changes that are not published yet."""
    FAILED = "FAILED"
    """The last good rows of some key are published."""


def read_reprocessing(
    workspace: Readable, datasets: Iterable[str], known_at: KnownAt | None = None
) -> dict[str, ReprocessingStatus]:
    """The status of each of these datasets that is an output of a timeline, or computed from one.

    With `known_at` it is what heads said then. Which changes were not published at that time is not known.
    """
    project, lake = workspace.project, workspace.lake
    above = {name: upstream(project, {name}) for name in datasets if project.find(name)}
    folded = {node.name for node in project.nodes if node.traits.folding}
    concerned = {name: nodes for name, nodes in above.items() if nodes & folded}
    if not concerned:
        return {}
    needed = frozenset[str]().union(*concerned.values())
    keys_by_node = {name: _find_statuses(lake, name, known_at) for name in sorted(needed & folded)}
    behind = set() if known_at else _find_behind(project, lake, needed)
    return {name: _judge(nodes, behind, keys_by_node) for name, nodes in concerned.items()}


def _judge(
    nodes: Collection[str], behind: Collection[str], keys_by_node: Mapping[str, Collection[KeyStatus]]
) -> ReprocessingStatus:
    """`nodes` are the dataset and all that it is computed from."""
    statuses = {status for node in nodes for status in keys_by_node.get(node, ())}
    if KeyStatus.REPROCESSING in statuses or any(node in behind for node in nodes):
        return ReprocessingStatus.IN_PROGRESS
    return ReprocessingStatus.FAILED if KeyStatus.FAILED in statuses else ReprocessingStatus.CURRENT


def _find_statuses(lake: Lake, name: str, known_at: KnownAt | None) -> frozenset[KeyStatus]:
    """The statuses that occur among the keys of an output. None of a version whose files are gone."""
    uri, version = lake.table(name), None
    if known_at is not None and known_at.at is not None:
        times = [(e.version, e.committed_at) for e in read_entries(uri, -1) if e.committed_at]
        version = max((v for v, committed_at in times if committed_at <= known_at.at), default=-1)
    elif known_at is not None:
        version = known_at.versions.get(name)
    if version is not None and not _is_kept(uri, version):
        return frozenset()
    table = open_table(uri, version)
    return frozenset(head.status for head in count_heads(table)) if table else frozenset()


def _is_kept(uri: str, version: int) -> bool:
    later = (e.metadata.readable_from for e in read_entries(uri, version) if e.metadata)
    return version >= max(later, default=0)


def _find_behind(project: Project, lake: Lake, names: Collection[str]) -> set[str]:
    """The nodes that have changes of an input still to read."""
    from strandline.catalog import open_catalog, read_view  # only queries about timelines need it

    catalog = open_catalog(project.settings.catalog)
    try:
        view = read_view(catalog)
    finally:
        catalog.close()
    return {name for name in names if _is_behind(lake, view, project.get(name))}


def _is_behind(lake: Lake, view: CatalogView, node: Node) -> bool:
    record = view.nodes.get(node.name)
    cursors = record.cursors if record else {}
    for dataset in {i.dataset for i in node.inputs if not isinstance(i.relation, Lookup)}:
        cursor = cursors.get(dataset)
        table = find_state(lake, dataset, cursor.version if cursor else None)
        if table is not None and (cursor is None or pending(node, table, cursor)):
            return True
    return False
