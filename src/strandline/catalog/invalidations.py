"""Invalidations, and which job has processed which: acknowledged when a job's cursor passes the commit that carries it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select, update

from strandline.model.plan import Cursor
from strandline.model.records import CommitRecord

from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import data_invalidations, invalidation_jobs


def put_invalidations(connection: Connection, record: CommitRecord, readers: Sequence[str]) -> None:
    """Record the invalidations of a commit, owed by each job that reads the dataset now. A job added later needs none."""
    found = record.metadata.invalidations
    if not found:
        return
    insert = insert_into(connection, data_invalidations).on_conflict_do_nothing()
    connection.execute(
        insert,
        [
            {
                "id": i.id,
                "dataset": record.metadata.node,
                "scope": i.scope,
                "partition_key": i.partition_key or None,
                "row_filter": dict(i.row_filter) or None,
                "reason": i.reason,
                "source_event": dict(i.source_event) or None,
                "created_at": record.committed_at,
                "table_id": record.table_id,
                "table_version": record.version,
            }
            for i in found
        ],
    )
    owed = [{"invalidation_id": i.id, "job": job, "processed_at": None} for i in found for job in readers]
    if owed:
        connection.execute(insert_into(connection, invalidation_jobs).on_conflict_do_nothing(), owed)


def acknowledge(connection: Connection, job: str, cursors: Mapping[str, Cursor]) -> None:
    """A job's cursors have moved: what lies behind them is processed."""
    for dataset, cursor in cursors.items():
        behind = select(data_invalidations.c.id).where(
            data_invalidations.c.dataset == dataset,
            data_invalidations.c.table_id == cursor.table_id,
            data_invalidations.c.table_version <= cursor.version,
        )
        mine = (invalidation_jobs.c.job == job) & invalidation_jobs.c.processed_at.is_(None)
        done = update(invalidation_jobs).where(mine & invalidation_jobs.c.invalidation_id.in_(behind))
        connection.execute(done.values(processed_at=database_now()))


def read_invalidations(catalog: Catalog, jobs: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every invalidation, and what each of these jobs has made of it. A job that is gone releases what it owed.

    `processed_at` of an invalidation is set when every job has processed it.
    """
    with catalog.reading() as connection:
        owed = [
            dict(row)
            for row in connection.execute(
                select(invalidation_jobs)
                .where(invalidation_jobs.c.job.in_(list(jobs)))
                .order_by(invalidation_jobs.c.invalidation_id, invalidation_jobs.c.job)
            ).mappings()
        ]
        rows = connection.execute(
            select(data_invalidations).order_by(
                data_invalidations.c.created_at, data_invalidations.c.table_version, data_invalidations.c.id
            )
        ).mappings()
        found = [dict(row) for row in rows]
    times: dict[str, list[Any]] = {}
    for row in owed:
        times.setdefault(row["invalidation_id"], []).append(row["processed_at"])
    for row in found:
        at = times.get(row["id"], [])
        row["processed_at"] = max(at) if at and None not in at else row["created_at"] if not at else None
    return found, owed


def count_pending(catalog: Catalog, jobs: Sequence[str]) -> dict[str, int]:
    """By dataset: invalidations that some job has still to process."""
    pending = (
        select(data_invalidations.c.dataset, func.count(data_invalidations.c.id.distinct()))
        .join(invalidation_jobs, invalidation_jobs.c.invalidation_id == data_invalidations.c.id)
        .where(invalidation_jobs.c.processed_at.is_(None), invalidation_jobs.c.job.in_(list(jobs)))
        .group_by(data_invalidations.c.dataset)
    )
    with catalog.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(pending)}
