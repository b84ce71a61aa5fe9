"""What to do: (project, catalog view, table states, listings, request) -> Plan. Pure.

In: values. Out: a `Plan`. No Spark, SQL, YAML, clock or chance. A plan never reads data.
"""

from .planner import plan
from .request import Backfill, Observed, PlanRequest
from .selection import select_nodes
from .staleness import current_config, find_frozen, find_stale

__all__ = [
    "Backfill",
    "Observed",
    "PlanRequest",
    "current_config",
    "find_frozen",
    "find_stale",
    "plan",
    "select_nodes",
]
