"""What a source's table has of some names, without Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime

from strandline.model.columns import INGESTED_AT, POSITION
from strandline.sql.literals import datafusion_literal, datafusion_name

from .log import read_entries
from .table import get_table, open_table

_NAMES_A_QUERY = 2_000


def find_received(uri: str, version: int, names: Sequence[str]) -> dict[str, tuple[int, datetime]]:
    """By name: the highest part of its positions, and when a row of it was received last."""
    table = get_table(uri, version)
    name, part = (f"{datafusion_name(POSITION)}['{field}']" for field in ("name", "part"))
    found: dict[str, tuple[int, datetime]] = {}
    for start in range(0, len(names), _NAMES_A_QUERY):
        literals = ", ".join(str(datafusion_literal(one)) for one in names[start : start + _NAMES_A_QUERY])
        rows = table.ask(
            f"SELECT {name} AS name, max({part}) AS part, max({datafusion_name(INGESTED_AT)}) AS at"
            f" FROM t WHERE {name} IN ({literals}) GROUP BY 1"
        )
        for row in rows.to_pylist():
            found[row["name"]] = (row["part"], row["at"].astimezone(UTC))
    return found


def find_receiver(uri: str, name: str) -> str | None:
    """The run that received the rows of a name last. None if the table has none."""
    table = open_table(uri)
    received = find_received(uri, table.version, [name]).get(name) if table else None
    if received is None:
        return None
    _, at = received
    begin = at.replace(microsecond=at.microsecond // 1000 * 1000)  # commits are timed in milliseconds
    for entry in read_entries(uri, -1):
        if entry.metadata and entry.changes_rows and entry.committed_at and entry.committed_at >= begin:
            return entry.metadata.run
    return None
