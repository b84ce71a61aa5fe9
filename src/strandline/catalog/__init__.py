"""What we remember: the control-plane database, on SQLite or Postgres.

In: what `dispatch` did (commits, unchanged inputs, leases, runs). Out: `CatalogView` for the planner, leases
for writers. Only `dispatch` and `app` write it. It must not import Spark, `lake` or `plan`; SQLAlchemy stays
inside.
"""

from .commits import record_commit, record_unchanged
from .handle import Catalog
from .invalidations import read_invalidations
from .leases import acquire_lease, list_leases, next_token, release_lease, renew_leases
from .open import open_catalog
from .probe import find_damage, require_writable
from .runs import audit, count_fenced, finish_run, read_runs, read_tasks, record_task, start_run
from .swap import find_file, opened_aside, swap
from .view import find_node, read_view

__all__ = [
    "Catalog",
    "acquire_lease",
    "audit",
    "count_fenced",
    "find_damage",
    "find_file",
    "find_node",
    "finish_run",
    "list_leases",
    "next_token",
    "open_catalog",
    "opened_aside",
    "read_invalidations",
    "read_runs",
    "read_tasks",
    "read_view",
    "record_commit",
    "record_task",
    "record_unchanged",
    "release_lease",
    "renew_leases",
    "require_writable",
    "start_run",
    "swap",
]
