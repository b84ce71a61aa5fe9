"""The scope of an invalidation in the columns of seed 001: `scope`, `partition_key` and `row_filter`.

The catalog, `query` and the command line show it in this form. Commits stored it so before scopes were
values.
"""

from collections.abc import Mapping

from .condition_json import from_row_filter, to_row_filter
from .scope import Partitions, Rows, Scope, find_filter

PARTITION = "partition"
ROW_RANGE = "row_range"


def to_columns(scope: Scope) -> dict[str, object]:
    """`partition_key` is empty unless the scope is a partition. `row_filter` is empty if it names no rows."""
    where = find_filter(scope)
    partition_key = scope.names[0] if isinstance(scope, Partitions) else ""
    return {
        "scope": PARTITION if partition_key else ROW_RANGE,
        "partition_key": partition_key,
        "row_filter": to_row_filter(where) if where else {},
    }


def from_columns(partition_key: str | None, row_filter: Mapping[str, object] | None) -> Scope:
    """The inverse of `to_columns`; a range becomes rows. Raises CallError for what is not a filter."""
    where = from_row_filter(row_filter or {})
    return Partitions(names=(partition_key,), where=where) if partition_key else Rows(where=where)
