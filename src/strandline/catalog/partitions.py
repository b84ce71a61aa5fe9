"""Partition versions: when each partition was built, by which configuration, at which table version."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, Select, delete

from strandline.model.catalog_records import PartitionVersion
from strandline.model.commits import CommitRecord, Operation

from .handle import insert_into
from .tables import partition_versions


def put_partitions(connection: Connection, record: CommitRecord, location: str) -> None:
    """Record what a commit built. One that wrote the whole table leaves no partition but its own."""
    metadata = record.metadata
    if metadata.operation is Operation.OVERWRITE:
        connection.execute(delete(partition_versions).where(partition_versions.c.dataset == metadata.node))
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
            # Files hold several partitions: each has its share of what the commit wrote.
            "bytes": record.bytes_added * p.rows // total if total else 0,
            "table_version": record.version,
        }
        for p in metadata.partitions
    ]
    insert = insert_into(connection, partition_versions)
    changed = {name: insert.excluded[name] for name in values[0] if name not in ("dataset", "partition_key")}
    connection.execute(
        insert.on_conflict_do_update(index_elements=["dataset", "partition_key"], set_=changed), values
    )


def read_partitions(connection: Connection, wanted: Select[Any]) -> dict[str, dict[str, PartitionVersion]]:
    """By dataset and partition key, in the order of the keys."""
    found: dict[str, dict[str, PartitionVersion]] = defaultdict(dict)
    for row in connection.execute(
        wanted.order_by(partition_versions.c.dataset, partition_versions.c.partition_key)
    ).mappings():
        found[row["dataset"]][row["partition_key"]] = PartitionVersion(**row)
    return found
