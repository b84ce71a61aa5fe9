"""Invalidations, and which job has processed which.

A job has processed one when its cursor passes the commit that carries it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Text, Update, bindparam, select, update

from strandline.model.commits import CommitRecord
from strandline.model.invalidations import to_columns
from strandline.model.plan import Cursor

from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import TABLE_CURSOR, data_invalidations, dataset_cursors, datasets, invalidation_jobs


def put_invalidations(connection: Connection, record: CommitRecord, readers: Sequence[str]) -> None:
    """Record the invalidations of a commit for each job that reads the dataset now.

    A job that is added later computes from everything anyway.
    """
    invalidations = record.metadata.invalidations
    if not invalidations:
        return
    insert = insert_into(connection.dialect.name, data_invalidations).on_conflict_do_nothing()
    connection.execute(
        insert,
        [
            {
                "id": i.id,
                "dataset": record.metadata.node,
                **{name: value or None for name, value in to_columns(i.scope).items()},
                "reason": i.reason,
                "source_event": dict(i.source_event) or None,
                "created_at": record.committed_at,
                "table_id": record.table_id,
                "table_version": record.version,
            }
            for i in invalidations
        ],
    )
    owed = [
        {"invalidation_id": i.id, "job": job, "processed_at": None} for i in invalidations for job in readers
    ]
    if owed:
        insert = insert_into(connection.dialect.name, invalidation_jobs).on_conflict_do_nothing()
        connection.execute(insert, owed)
    # If the process that made a commit died before recording it, readers may have processed the commit
    # already.
    for job in readers:
        acknowledge(connection, job, _find_cursor(connection, job, record.metadata.node))


def _find_cursor(connection: Connection, job: str, dataset: str) -> dict[str, Cursor]:
    mine = (
        (dataset_cursors.c.dataset == job)
        & (dataset_cursors.c.cursor_column == TABLE_CURSOR)
        & (dataset_cursors.c.input == dataset)
    )
    row = connection.execute(
        select(dataset_cursors.c.table_id, dataset_cursors.c.table_version).where(mine)
    ).first()
    return {dataset: Cursor(table_id=row.table_id, version=row.table_version)} if row else {}


def acknowledge(connection: Connection, job: str, cursors: Mapping[str, Cursor]) -> None:
    """Record what a job has processed now that its cursors have moved.

    That is every invalidation behind a cursor, and every one of a table that has been replaced since.
    """
    for dataset, cursor in cursors.items():
        connection.execute(
            _ACKNOWLEDGE,
            {
                "reader": job,
                "input": dataset,
                "cursor_table": cursor.table_id,
                "cursor_version": cursor.version,
            },
        )


def _build_acknowledge() -> Update:
    dataset, table_id = bindparam("input", type_=Text), bindparam("cursor_table", type_=Text)
    columns = data_invalidations.c
    # A job that reads a recreated table computes from all of it. A cursor in the old table says nothing
    # about the present one.
    present = select(datasets.c.table_id).where(datasets.c.dataset == dataset).scalar_subquery()
    passed = (columns.table_id == table_id) & (columns.table_version <= bindparam("cursor_version"))
    replaced = (columns.table_id != table_id) & (present == table_id)
    behind = select(columns.id).where(columns.dataset == dataset, passed | replaced)
    mine = (invalidation_jobs.c.job == bindparam("reader")) & invalidation_jobs.c.processed_at.is_(None)
    done = update(invalidation_jobs).where(mine & invalidation_jobs.c.invalidation_id.in_(behind))
    return done.values(processed_at=database_now())


_ACKNOWLEDGE = _build_acknowledge()


def find_invalidation(catalog: Catalog, name: str) -> int | None:
    """The version of the commit that carries an invalidation. None if there is none."""
    found = select(data_invalidations.c.table_version).where(data_invalidations.c.id == name)
    with catalog.reading() as connection:
        version: int | None = connection.execute(found).scalar()
        return version


def read_invalidations(
    catalog: Catalog, jobs: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every invalidation, and when each of these jobs processed it.

    A job that no longer exists owes nothing. `processed_at` of an invalidation is set when every job has
    processed it.
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
        invalidations = [dict(row) for row in rows]
    times: dict[str, list[Any]] = {}
    for row in owed:
        times.setdefault(row["invalidation_id"], []).append(row["processed_at"])
    for row in invalidations:
        at = times.get(row["id"], [])
        row["processed_at"] = max(at) if at and None not in at else row["created_at"] if not at else None
    return invalidations, owed
