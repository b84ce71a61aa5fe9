"""What a source's table has of some names, without Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime

from strandline.model.columns import INGESTED_AT, POSITION
from strandline.sql.literals import datafusion_literal, datafusion_name

from .table import get_table

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
