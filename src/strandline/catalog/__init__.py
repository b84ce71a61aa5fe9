"""What we remember: the control-plane database, on SQLite or Postgres.

Comes in: what `dispatch` did (commits, unchanged inputs, leases, runs). Goes out: `CatalogView` for the planner, leases for writers.
Only `dispatch` and `app` write it. Must not import Spark, `lake` or `plan`; SQLAlchemy stays inside.
"""

from .commits import record_commit, record_unchanged
from .handle import Catalog
from .invalidations import count_pending, read_invalidations
from .leases import acquire_lease, next_token, release_lease, renew_leases
from .open import open_catalog
from .runs import audit, finish_run, read_runs, read_tasks, record_task, start_run
from .view import find_node, read_view

__all__ = [
    "Catalog",
    "acquire_lease",
    "audit",
    "count_pending",
    "find_node",
    "finish_run",
    "next_token",
    "open_catalog",
    "read_invalidations",
    "read_runs",
    "read_tasks",
    "read_view",
    "record_commit",
    "record_task",
    "record_unchanged",
    "release_lease",
    "renew_leases",
    "start_run",
]
