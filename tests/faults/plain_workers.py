"""The workers of `dispatch/workers.py` in plain Python over rows: results of tasks, and their commits.

The module of its kind in `kinds` computes what a task writes. No Spark.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from strandline.dispatch.desk import Desk
from strandline.lake.compaction import Compaction
from strandline.lake.work import Prepared, Write
from strandline.lake.writes import Ticket
from strandline.model.catalog_records import NodeRecord
from strandline.model.columns import KEY
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.hashing import digest
from strandline.model.leases import Lease
from strandline.model.metadata import to_json
from strandline.model.node import Node
from strandline.model.plan import Cursor, Task

from . import table_log
from .kinds import KINDS
from .plain_work import Work
from .table_log import Rows

KINDS_BY_NAME = {kind.name: kind for kind in KINDS}


def prepare(
    desk: Desk,
    node: Node,
    task: Task,
    lease: Lease,
    record: NodeRecord | None,
    inputs: dict[str, Cursor],
    config: WrittenConfig,
) -> Prepared:
    own = desk.pins.find(node.name)
    work = Work(
        desk=desk,
        node=node,
        task=task,
        inputs=inputs,
        own_version=own.version if own else None,
        live_rows=desk.pins.rows(node.name) if own else 0,
        record=record if own else None,
        config=config,
    )
    return KINDS_BY_NAME[node.kind].prepare(work)


def read_ahead(desk: Desk, task: Task, written: frozenset[str]) -> None:
    """Nothing is read ahead here, so schedules stay in one thread."""


def hash_schema(write: Write) -> str:
    rows: Rows = write.rows  # type: ignore[assignment]
    return digest([[f.name, str(f.type)] for f in rows.schema])


def commit_write(desk: Desk, write: Write, lease: Lease, metadata: str) -> None:
    ticket = Ticket(dataset=lease.dataset, token=lease.token, metadata=metadata)
    rows: Rows = write.rows  # type: ignore[assignment]
    indexed = desk.project.indexed(lease.dataset)
    match write.operation:
        case Operation.APPEND | Operation.COUNTS | Operation.INSERT_NEW:
            table_log.append(
                rows,
                desk.lake,
                ticket,
                received=write.received,
                first=desk.pins.find(lease.dataset) is None,
                indexed=indexed,
            )
        case Operation.REPLACE_KEYS if write.superseding:
            table_log.replace_superseded(rows, desk.lake, ticket, write.superseding)
        case Operation.REPLACE_KEYS:
            table_log.replace_keys(rows, desk.lake, ticket)
        case Operation.REPLACE_PARTITIONS:
            table_log.replace_where(rows, desk.lake, ticket, lambda row: row[KEY] in write.replaced)
        case Operation.OVERWRITE:
            table_log.overwrite(rows, desk.lake, ticket, indexed=indexed)
        case other:
            raise ValueError(f"no worker prepares {other}")


def commit_nothing(desk: Desk, node: Node, lease: Lease, operation: Operation, **statements: Any) -> None:
    table_log.commit_nothing(desk.lake, _bare_ticket(desk, node, lease, operation, **statements))


def commit_purge(desk: Desk, node: Node, lease: Lease) -> None:
    table_log.purge(desk.lake, _bare_ticket(desk, node, lease, Operation.PURGE))


def commit_compaction(desk: Desk, node: Node, lease: Lease, compaction: Compaction) -> None:
    metadata = _bare_ticket(desk, node, lease, Operation.COMPACT).metadata
    table_log.compact(desk.lake, node.name, metadata, compaction.sorted_by)


def commit_statistics(desk: Desk, node: Node, lease: Lease, columns: Sequence[str]) -> None:
    ticket = _bare_ticket(desk, node, lease, Operation.STATISTICS)
    table_log.keep_statistics(desk.lake, node.name, columns, ticket.metadata)


def _bare_ticket(desk: Desk, node: Node, lease: Lease, operation: Operation, **statements: Any) -> Ticket:
    metadata = CommitMetadata.bare(
        run=desk.run, node=node.name, token=lease.token, operation=operation, as_of=desk.as_of.isoformat()
    )
    return Ticket(dataset=node.name, token=lease.token, metadata=to_json(replace(metadata, **statements)))
