"""Runs, the results of their tasks, and the log of what people asked for."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Float, Row, bindparam, func, insert, select, update

from strandline.model.catalog_records import RunRecord
from strandline.model.errors import ConflictError
from strandline.model.kind import NodeKind
from strandline.model.plan import Cause, Status, Strategy, TaskResult, describe_covered
from strandline.model.scope_json import scope_from_json, scope_to_json

from .handle import Catalog, insert_into
from .sqltypes import Instant, database_now
from .tables import audit_log, datasets, no_table, runs, tasks

_INSERT_TASK = insert(tasks).values(
    run=bindparam("one_run"),
    node=bindparam("one"),
    attempt=select(func.coalesce(func.max(tasks.c.attempt), 0))
    .where(tasks.c.run == bindparam("one_run"), tasks.c.node == bindparam("one"))
    .scalar_subquery()
    + 1,
    status_since=func.coalesce(bindparam("since", type_=Instant), database_now()),
    started_at=database_now(bindparam("seconds", type_=Float)),
    ended_at=database_now(),
)
_NEWEST_TASK = (
    select(tasks.c.status, tasks.c.status_since)
    .where(tasks.c.node == bindparam("one"))
    .order_by(tasks.c.id.desc())
    .limit(1)
)


@cache
def _insert_dataset(dialect: str) -> Any:
    return insert_into(dialect, datasets).on_conflict_do_nothing()


def start_run(catalog: Catalog, run: str, as_of: str, cause: str) -> None:
    with catalog.writing() as connection:
        connection.execute(
            insert(runs).values(run=run, as_of=as_of, cause=cause, started_at=database_now(), status="")
        )


def finish_run(catalog: Catalog, run: str, status: str) -> None:
    """Close an open run. A run ends once."""
    with catalog.writing() as connection:
        change = (
            update(runs)
            .where(runs.c.run == run, runs.c.ended_at.is_(None))
            .values(ended_at=database_now(), status=status)
        )
        if connection.execute(change).rowcount != 1:
            raise ConflictError(
                f"Run `{run}` is not open, so it can't end as {status}: it was closed, or the catalog was"
                " restored, while it worked.",
                remedy="What its tasks published is kept. Run again: what is left is done.",
                slug="run-not-open",
            )


def record_task(catalog: Catalog, run: str, result: TaskResult) -> None:
    """Record one attempt of a task of the run."""
    with catalog.writing() as connection:
        # A node is listed from its first attempt on, so that a failure before the first commit is visible
        # (L13).
        known = {"dataset": result.node, "kind": str(result.kind), **no_table()}
        connection.execute(_insert_dataset(connection.dialect.name), known)
        connection.execute(
            _INSERT_TASK,
            {
                "one_run": run,
                "one": result.node,
                "kind": str(result.kind),
                "cause": str(result.cause),
                "strategy": str(result.strategy),
                "reason": result.reason,
                "scope_kind": str(result.scope.kind),
                "scope": describe_covered(result),
                "status": str(result.status),
                "since": _status_since(connection, result),
                "result": _measures(result),
                "error": result.error,
                "slug": result.slug,
                "seconds": -result.seconds,
            },
        )


def read_runs(catalog: Catalog, limit: int, after: str | None = None) -> tuple[RunRecord, ...]:
    """The newest runs, newest first. `after`: only those that come after this one in the list."""
    listed = select(runs).order_by(runs.c.number.desc()).limit(limit)
    if after is not None:
        place = select(runs.c.number).where(runs.c.run == after).scalar_subquery()
        listed = listed.where(runs.c.number < place)
    with catalog.reading() as connection:
        return tuple(_run_record(row) for row in connection.execute(listed))


def find_run(catalog: Catalog, run: str) -> RunRecord | None:
    with catalog.reading() as connection:
        row = connection.execute(select(runs).where(runs.c.run == run)).first()
    return _run_record(row) if row else None


def _run_record(row: Row[Any]) -> RunRecord:
    return RunRecord(
        run=row.run,
        as_of=row.as_of,
        cause=row.cause,
        started_at=row.started_at,
        ended_at=row.ended_at,
        status=row.status,
    )


def read_tasks(catalog: Catalog, run: str) -> tuple[TaskResult, ...]:
    """The attempts of a run in the order in which they were recorded."""
    with catalog.reading() as connection:
        return tuple(
            _task_result(row)
            for row in connection.execute(select(tasks).where(tasks.c.run == run).order_by(tasks.c.id))
        )


def count_fenced(catalog: Catalog, nodes: Collection[str]) -> int:
    """The attempts of these nodes that a newer writer overtook."""
    with catalog.reading() as connection:
        counted = select(func.count()).where(tasks.c.status == str(Status.FENCED), tasks.c.node.in_(nodes))
        return int(connection.execute(counted).scalar_one())


def audit(catalog: Catalog, verb: str, detail: Mapping[str, object]) -> None:
    """Record what a person did."""
    with catalog.writing() as connection:
        connection.execute(insert(audit_log).values(at=database_now(), verb=verb, detail=dict(detail)))


def _status_since(connection: Connection, result: TaskResult) -> datetime | None:
    """Since when the node's attempts have ended like this one; None: this one is the first that does.

    `done` and `unchanged` count as the same.
    """
    before = connection.execute(_NEWEST_TASK, {"one": result.node}).first()
    well = {Status.DONE, Status.UNCHANGED}
    if before and (before.status == result.status or {before.status, result.status} <= well):
        since: datetime = before.status_since
        return since
    return None


def _measures(result: TaskResult) -> dict[str, object]:
    """What has no column of its own. The scope has columns for people; its value is here."""
    with_column = {"node", "kind", "cause", "strategy", "reason", "status", "error", "slug"}
    measures = {
        field.name: getattr(result, field.name) for field in fields(result) if field.name not in with_column
    }
    return {
        **measures,
        "input_versions": dict(result.input_versions),
        "counts": dict(result.counts),
        "scope": scope_to_json(result.scope),
        "covered": None if result.covered is None else scope_to_json(result.covered),
    }


def _task_result(row: Row[Any]) -> TaskResult:
    # Tasks of an older Strandline have the text of their scope alone.
    measures = {"scope": row.scope, "covered": None, "left": (), **row.result}
    covered = measures["covered"]
    return TaskResult(
        node=row.node,
        kind=NodeKind(row.kind),
        cause=Cause(row.cause),
        strategy=Strategy(row.strategy),
        reason=row.reason,
        status=Status(row.status),
        error=row.error,
        slug=row.slug,
        **{
            **measures,
            "notes": tuple(measures["notes"]),
            "left": tuple(measures["left"]),
            "scope": scope_from_json(measures["scope"]),
            "covered": None if covered is None else scope_from_json(covered),
        },
    )
