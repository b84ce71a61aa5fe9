"""Partition versions: when each partition was built, by which configuration, at which table version."""

from collections import defaultdict
from functools import cache
from typing import Any

from sqlalchemy import Connection, CursorResult, bindparam, delete

from strandline.model.catalog_records import PartitionVersion
from strandline.model.commits import CommitRecord, Operation

from .handle import insert_into
from .tables import partition_versions

FORGET_PARTITIONS = delete(partition_versions).where(partition_versions.c.dataset == bindparam("one"))


def put_partitions(connection: Connection, record: CommitRecord, location: str) -> None:
    """Record the partitions that a commit built.

    A commit that wrote the whole table replaces all earlier ones.
    """
    metadata = record.metadata
    if metadata.operation is Operation.OVERWRITE:
        connection.execute(FORGET_PARTITIONS, {"one": metadata.node})
    if not metadata.partitions:
        return
    total = sum(p.rows for p in metadata.partitions)
    values = [
        {
            "dataset": metadata.node,
            "partition_key": p.partition_key,
            "version": record.committed_at,
            "config_hash": metadata.config.hash,
            "schema_hash": metadata.schema_hash,
            "location": location,
            "row_count": p.rows,
            # A file may contain several partitions, so each gets its share of the bytes that the commit
            # wrote.
            "bytes": record.bytes_added * p.rows // total if total else 0,
            "table_version": record.version,
        }
        for p in metadata.partitions
    ]
    connection.execute(_upsert(connection.dialect.name), values)


@cache
def _upsert(dialect: str) -> Any:
    insert = insert_into(dialect, partition_versions)
    changed = {
        column.name: insert.excluded[column.name] for column in partition_versions.c if not column.primary_key
    }
    return insert.on_conflict_do_update(index_elements=["dataset", "partition_key"], set_=changed)


def read_partitions(rows: CursorResult[Any]) -> dict[str, dict[str, PartitionVersion]]:
    """By dataset and partition key, in the order of the rows."""
    versions: dict[str, dict[str, PartitionVersion]] = defaultdict(dict)
    for row in rows.mappings():
        versions[row["dataset"]][row["partition_key"]] = PartitionVersion(**row)
    return versions
