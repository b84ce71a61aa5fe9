"""What the heads in a table of a timeline say about its keys (ADR 14). Starts no Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
from deltalake import QueryBuilder

from strandline.model.columns import HEAD, ROLE, Role
from strandline.model.plan import Cursor
from strandline.model.timeline import DATE, KeyStatus
from strandline.sql.literals import datafusion_name

from .log import list_versions, read_entries
from .table import Table

_HEAD = datafusion_name(HEAD)
_GROUPED = f"""
    {_HEAD}['status'] AS status,
    {_HEAD}['watermark_on'] AS watermark_on,
    coalesce(cardinality({_HEAD}['waits']), 0) > 0 AS waits"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCount:
    """The number of keys whose heads say the same."""

    status: KeyStatus
    watermark_on: date | None
    waits: bool
    """Some business dates wait for a required reference. All others are valued."""
    keys: int
    first_on: date | None = None
    """The first date with facts. None if the key has none, or it was not asked for."""


def count_heads(table: Table) -> tuple[HeadCount, ...]:
    """The keys of a table, by what their heads say."""
    sql = f"""SELECT {_GROUPED}, count(*) AS keys FROM t
        WHERE {_is_role(Role.HEAD)} GROUP BY 1, 2, 3"""
    return tuple(
        HeadCount(**{**row, "status": KeyStatus(row["status"])}) for row in table.ask(sql).to_pylist()
    )


def count_heads_by_start(table: Table, history: Table, key: Sequence[str]) -> tuple[HeadCount, ...]:
    """The same, by the first date of the key in its history too."""
    session = history.register(table.register(QueryBuilder(), "heads"), "history")
    names = ", ".join(map(datafusion_name, key))
    date_column = datafusion_name(DATE)
    sql = f"""
        SELECT status, watermark_on, waits, first_on, count(*) AS keys FROM (
            SELECT {names}, max(status) AS status, max(watermark_on) AS watermark_on,
                bool_or(waits) AS waits, min(first_on) AS first_on
            FROM (
                SELECT {names}, {_GROUPED}, arrow_cast(NULL, 'Date32') AS first_on
                FROM heads WHERE {_is_role(Role.HEAD)}
                UNION ALL
                SELECT {names}, NULL, NULL, NULL, min({date_column})
                FROM history WHERE {_is_role(Role.ROW)} GROUP BY {names}
            ) GROUP BY {names}
        ) WHERE status IS NOT NULL GROUP BY status, watermark_on, waits, first_on"""
    rows = pa.table(session.execute(sql).read_all()).to_pylist()
    return tuple(HeadCount(**{**row, "status": KeyStatus(row["status"])}) for row in rows)


def count_waiting(table: Table) -> Mapping[date, int]:
    """By business date: the number of keys for which a required reference has no row on it."""
    waits = f"SELECT unnest({_HEAD}['waits']) AS d FROM t WHERE {_is_role(Role.HEAD)}"
    rows = table.ask(f"SELECT d, count(*) AS keys FROM ({waits}) GROUP BY d").to_pylist()
    return {row["d"]: row["keys"] for row in rows}


def _is_role(role: Role) -> str:
    return f"{datafusion_name(ROLE)} = '{role}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the last commit of a table that computed something says about how it was computed."""

    as_of: datetime
    inputs: Mapping[str, Cursor]


def find_recorded(uri: str, version: int) -> Recorded | None:
    """How a version of a table was computed. None if no commit up to it tells."""
    for earlier in reversed(list_versions(uri)):
        if earlier > version:
            continue
        metadata = next(read_entries(uri, earlier - 1)).metadata
        if metadata is not None and not metadata.operation.is_bare and metadata.as_of:
            return Recorded(as_of=datetime.fromisoformat(metadata.as_of), inputs=metadata.inputs)
    return None
