"""What the heads in a table of a timeline say about its keys (ADR 14). Starts no Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from strandline.model.columns import HEAD, ROLE, Role
from strandline.model.key_states import HeadCount
from strandline.model.plan import Cursor
from strandline.model.timeline import DATE, KeyStatus
from strandline.sql.literals import datafusion_name

from .log import find_log
from .table import Table

_HEAD, _DATE = datafusion_name(HEAD), datafusion_name(DATE)


def count_heads(table: Table) -> tuple[HeadCount, ...]:
    """The keys of a table, by status and watermark."""
    sql = f"""
        SELECT {_HEAD}['status'] AS status, {_HEAD}['watermark_on'] AS watermark_on, count(*) AS keys
        FROM t WHERE {_is_role(Role.HEAD)} GROUP BY 1, 2"""
    return tuple(map(_head_count, table.ask(sql).to_pylist()))


def count_heads_by_date(table: Table, history: Table, key: Sequence[str]) -> tuple[HeadCount, ...]:
    """The same, also by the dates that wait and by the first date of the key in its history."""
    session = history.register(table.register(QueryBuilder(), "heads"), "history")
    columns = [datafusion_name(column) for column in key]
    names = ", ".join(columns)
    same = " AND ".join(f"(h.{column} IS NOT DISTINCT FROM f.{column})" for column in columns)
    sql = f"""
        SELECT {_HEAD}['status'] AS status, {_HEAD}['watermark_on'] AS watermark_on,
            {_HEAD}['waits'] AS waits, {_HEAD}['pending'] AS pending, first_on, count(*) AS keys
        FROM (SELECT {names}, {_HEAD} FROM heads WHERE {_is_role(Role.HEAD)}) AS h
        LEFT JOIN (
            SELECT {names}, min({_DATE}) AS first_on
            FROM history WHERE {_is_role(Role.ROW)} GROUP BY {names}
        ) AS f ON {same}
        GROUP BY 1, 2, 3, 4, 5"""
    return tuple(map(_head_count, pa.table(session.execute(sql).read_all()).to_pylist()))


def _head_count(row: Mapping[str, Any]) -> HeadCount:
    return HeadCount(
        status=KeyStatus(row["status"]),
        watermark_on=row["watermark_on"],
        keys=row["keys"],
        waits=tuple(row.get("waits") or ()),
        pending=tuple((waits["start"], waits["end"]) for waits in row.get("pending") or ()),
        first_on=row.get("first_on"),
    )


def _is_role(role: Role) -> str:
    return f"{datafusion_name(ROLE)} = '{role}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the last commit of a table that computed something says about how it was computed."""

    as_of: datetime
    inputs: Mapping[str, Cursor]


def find_recorded(uri: str, version: int) -> Recorded | None:
    """How a version of a table was computed. None if no commit up to it tells."""
    for entry in find_log(uri).newest_first(version):
        metadata = entry.metadata
        if metadata is not None and not metadata.operation.is_bare and metadata.as_of:
            return Recorded(as_of=datetime.fromisoformat(metadata.as_of), inputs=metadata.inputs)
    return None
