"""What the planner may know of the catalog, as one value read at one moment."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, select

from strandline.model.catalog_records import CatalogView, NodeRecord, PartitionVersion
from strandline.model.commits import WrittenConfig
from strandline.model.files import FileRead
from strandline.model.kind import NodeKind
from strandline.model.metadata import file_from_dict
from strandline.model.plan import Cursor

from .handle import Catalog
from .partitions import read_partitions
from .sqltypes import database_now
from .tables import FILE_CURSOR, HELD, dataset_cursors, datasets, leases, partition_versions, tasks

_NEWEST = (
    select(func.max(tasks.c.id))
    .where(tasks.c.node == datasets.c.dataset)
    .correlate(datasets)
    .scalar_subquery()
)
"""One index lookup per dataset: the table of tasks grows with every run, and every plan reads this."""

_BUILDING = (
    select(leases.c.dataset)
    .where(
        leases.c.dataset == datasets.c.dataset, leases.c.state == HELD, leases.c.expires_at > database_now()
    )
    .correlate(datasets)
    .exists()
    .label("building")
)

_NODES = select(
    datasets, _BUILDING, tasks.c.status, tasks.c.error, tasks.c.run, tasks.c.status_since
).select_from(datasets.outerjoin(tasks, tasks.c.id == _NEWEST))
_CURSORS = select(dataset_cursors)
_PARTITIONS = select(partition_versions).order_by(
    partition_versions.c.dataset, partition_versions.c.partition_key
)
_ALL = (_NODES, _CURSORS, _PARTITIONS)
_ONE = (
    _NODES.where(datasets.c.dataset == bindparam("one")),
    _CURSORS.where(dataset_cursors.c.dataset == bindparam("one")),
    _PARTITIONS.where(partition_versions.c.dataset == bindparam("one")),
)
"""Built once: to build a statement takes longer than SQLite takes to run it."""


def read_view(catalog: Catalog) -> CatalogView:
    """Every node that was ever tried. One without a table yet has `table_version` -1 and no `table_id`."""
    return CatalogView(nodes=_read_nodes(catalog, _ALL, {}))


def find_node(catalog: Catalog, dataset: str) -> NodeRecord | None:
    """One node of the view, without reading the files and cursors of the others."""
    return _read_nodes(catalog, _ONE, {"one": dataset}).get(dataset)


def _read_nodes(
    catalog: Catalog, queries: tuple[Select[Any], Select[Any], Select[Any]], parameters: dict[str, str]
) -> dict[str, NodeRecord]:
    """The nodes, from the queries of nodes, cursors and partitions."""
    nodes_query, cursors_query, partitions_query = queries
    cursors: dict[str, dict[str, Cursor]] = defaultdict(dict)
    files: dict[str, dict[str, FileRead]] = defaultdict(dict)
    with catalog.reading() as connection:
        for row in connection.execute(cursors_query, parameters):
            if row.cursor_column == FILE_CURSOR:
                files[row.dataset][row.input] = file_from_dict(row.cursor_value)
            else:
                cursors[row.dataset][row.input] = Cursor(table_id=row.table_id, version=row.table_version)
        partitions = read_partitions(connection.execute(partitions_query, parameters))
        rows = sorted(connection.execute(nodes_query, parameters), key=lambda row: row.dataset)
    return {
        row.dataset: _node(row, cursors[row.dataset], files[row.dataset], partitions.get(row.dataset, {}))
        for row in rows
    }


def _node(
    row: Row[Any],
    cursors: dict[str, Cursor],
    files: dict[str, FileRead],
    partitions: dict[str, PartitionVersion],
) -> NodeRecord:
    return NodeRecord(
        dataset=row.dataset,
        kind=NodeKind(row.kind),
        table_id=row.table_id,
        table_version=row.table_version,
        configs=tuple(WrittenConfig(hash=config["hash"], parts=config["parts"]) for config in row.configs),
        as_of=row.as_of,
        row_count=row.row_count,
        bytes=row.bytes,
        counts=row.counts,
        cursors=cursors,
        files=files,
        partitions=partitions,
        waiting=tuple(row.waiting),
        updated_at=row.updated_at,
        building=bool(row.building),
        last_status=row.status or "",
        last_error=row.error or "",
        status_since=row.status_since,
    )
