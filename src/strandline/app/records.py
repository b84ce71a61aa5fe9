"""The engine's records as datasets of `query`: partition versions, cursors and invalidations."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strandline.lake.query import Published, write_records
from strandline.model.node import Project
from strandline.sql.query_names import find_tables

if TYPE_CHECKING:
    from strandline.catalog import Catalog

RECORDS = {
    "partition_versions": {
        "dataset": "string",
        "partition_key": "string",
        "version": "timestamp",
        "config_hash": "string",
        "schema_hash": "string",
        "location": "string",
        "row_count": "bigint",
        "bytes": "bigint",
        "table_version": "bigint",
    },
    "dataset_cursors": {
        "dataset": "string",
        "job_id": "string",
        "cursor_column": "string",
        "cursor_value": "string",
        "updated_at": "timestamp",
        "table_id": "string",
        "table_version": "bigint",
    },
    "data_invalidations": {
        "id": "string",
        "dataset": "string",
        "scope": "string",
        "partition_key": "string",
        "row_filter": "string",
        "reason": "string",
        "source_event": "string",
        "created_at": "timestamp",
        "processed_at": "timestamp",
        "table_version": "bigint",
    },
    "invalidation_jobs": {"invalidation_id": "string", "job": "string", "processed_at": "timestamp"},
}
"""By table: its columns, with the names of seed 001, and their types."""


@contextmanager
def record_tables(project: Project, sql: str) -> Iterator[tuple[Published, ...]]:
    """The records a statement names, as tables for as long as the block lasts.

    A dataset of the project with the same name comes first.
    """
    named = [name for name in find_tables(sql, RECORDS) if name not in project.tables]
    if not named:
        yield ()
        return
    from strandline.catalog import open_catalog  # most queries need none, and start faster without

    catalog = open_catalog(project.settings.catalog)
    try:
        with tempfile.TemporaryDirectory(prefix="strandline-records-") as folder:
            yield tuple(_table(project, catalog, name, Path(folder) / name) for name in named)
    finally:
        catalog.close()


def _table(project: Project, catalog: "Catalog", name: str, folder: Path) -> Published:
    write_records(folder, RECORDS[name], read_records(project, catalog, name))
    return Published(name=name, dataset=name, uri=str(folder), version=0, live_only=False)


def read_records(project: Project, catalog: "Catalog", name: str) -> list[dict[str, Any]]:
    """The rows of one of them."""
    from strandline.catalog import read_invalidations, read_view

    jobs = tuple(n.name for n in project.nodes if n.traits.answers_invalidations)
    match name:
        case "partition_versions":
            nodes = read_view(catalog).nodes.values()
            return [
                {c: getattr(p, c) for c in RECORDS[name]} for node in nodes for p in node.partitions.values()
            ]
        case "dataset_cursors":
            return _read_cursors(project, catalog)
        case "data_invalidations":
            return [{c: row[c] for c in RECORDS[name]} for row in read_invalidations(catalog, jobs)[0]]
        case _:
            return read_invalidations(catalog, jobs)[1]


def _read_cursors(project: Project, catalog: "Catalog") -> list[dict[str, Any]]:
    """How far each node has read each input: a table version (L9).

    The column is the one whose values define its scopes.
    """
    from strandline.catalog import read_view

    rows = []
    for node in read_view(catalog).nodes.values():
        declared = project.find(node.dataset)
        columns = declared.key if declared and declared.traits.runs_code else ()
        for dataset, cursor in node.cursors.items():
            rows.append(
                {
                    "dataset": dataset,
                    "job_id": node.dataset,
                    "cursor_column": ", ".join(columns),
                    "cursor_value": str(cursor.version),
                    "updated_at": node.updated_at,
                    "table_id": cursor.table_id,
                    "table_version": cursor.version,
                }
            )
    return rows
