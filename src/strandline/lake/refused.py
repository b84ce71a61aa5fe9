"""A quarantine's table: counted by reason and read, without Spark."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import QueryBuilder

from strandline.model.columns import INGESTED_AT, POSITION
from strandline.sql.literals import datafusion_name

from .checksums import require_sound_files
from .location import open_folder
from .log import read_entries
from .plain_values import plain_rows
from .query import explain_failure
from .table import open_table

SLUG = "slug"
_AS_RECEIVED = ", ".join(
    [
        datafusion_name(INGESTED_AT),
        *(f"{datafusion_name(POSITION)}['{field}']" for field in ("name", "part", "place")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRows:
    counts: dict[str, int]
    """By slug, the most frequent first."""
    examples: list[dict[str, Any]]
    """Some rows of each slug, those received first."""
    rows: list[dict[str, Any]]
    """In the order in which they were received."""


def read_refused(uri: str, examples: int, limit: int | None) -> RefusedRows:
    """The content of a quarantine: the number of rows by slug, examples of each, and at most `limit` rows."""
    table = open_table(uri)
    if table is None:
        return RefusedRows(counts={}, examples=[], rows=[])
    session = table.register(QueryBuilder(), "__refused")
    counted = _ask(
        session, f'SELECT {SLUG}, count(*) AS n FROM "__refused" GROUP BY {SLUG} ORDER BY n DESC, {SLUG}'
    )
    nth = f"row_number() OVER (PARTITION BY {SLUG} ORDER BY {_AS_RECEIVED})"
    numbered = f'SELECT *, {nth} AS "__nth" FROM "__refused"'
    first = _ask(session, f'SELECT * FROM ({numbered}) WHERE "__nth" <= {examples} ORDER BY {SLUG}, "__nth"')
    most = "" if limit is None else f" LIMIT {limit}"
    rows = _ask(session, f'SELECT * FROM "__refused" ORDER BY {_AS_RECEIVED}{most}')
    return RefusedRows(counts={row[SLUG]: row["n"] for row in counted}, examples=first, rows=rows)


def count_added_by_slug(uri: str, version: int) -> dict[str, int]:
    """The number of rows of each slug that one commit added to a quarantine, the most frequent first."""
    added = next((e.added for e in read_entries(uri, version - 1) if e.version == version), ())
    require_sound_files(uri, added)
    file_system, root = open_folder(uri)
    slugs: Counter[str] = Counter()
    for file in added:
        path = f"{root}/{file.path}" if root else file.path
        slugs.update(pq.read_table(path, columns=[SLUG], filesystem=file_system).column(SLUG).to_pylist())
    return dict(sorted(slugs.items(), key=lambda counted: (-counted[1], counted[0])))


def _ask(session: QueryBuilder, sql: str) -> list[dict[str, Any]]:
    try:
        return plain_rows(pa.table(session.execute(sql).read_all()))
    except Exception as error:  # noqa: BLE001 delta-rs raises bare Exceptions if reading rows fails
        explain_failure(error)
