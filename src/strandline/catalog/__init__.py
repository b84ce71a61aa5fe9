"""What we remember: the control-plane database, on SQLite or Postgres.

In: what `dispatch` did (commits, unchanged inputs, leases, runs). Out: `CatalogView` for the planner, leases
for writers. Only `dispatch` and `app` write it. It must not import Spark, `lake` or `plan`; SQLAlchemy stays
inside.
"""

from .commits import record_commit, record_unchanged
from .endpoint_states import disable_endpoint, enable_endpoint, read_endpoint_states
from .handle import Catalog
from .invalidations import find_invalidation, read_invalidations
from .leases import acquire_lease, list_leases, next_token, release_lease, renew_leases
from .open import open_catalog
from .outbox import (
    claim_deliveries,
    enqueue_deliveries,
    find_delivery_cursor,
    find_next_due,
    record_outcomes,
    release_claims,
)
from .outbox_admin import (
    DeliveryFilter,
    cancel_deliveries,
    count_by_endpoint,
    count_deliveries,
    count_forgettable,
    find_delivery,
    find_oldest_waiting,
    forget_deliveries,
    has_delivery,
    list_named,
    list_waiting,
    read_attempts,
    read_deliveries,
    replay_deliveries,
    replay_delivery,
)
from .probe import find_damage, require_writable
from .requests import (
    add_request,
    claim_request,
    find_request,
    finish_request,
    forget_requests,
    give_back_requests,
    list_requests,
    renew_claims,
)
from .runs import audit, count_fenced, find_run, finish_run, read_runs, read_tasks, record_task, start_run
from .swap import find_file, opened_aside, swap
from .view import find_node, read_view

__all__ = [
    "Catalog",
    "DeliveryFilter",
    "acquire_lease",
    "add_request",
    "audit",
    "cancel_deliveries",
    "claim_deliveries",
    "claim_request",
    "count_by_endpoint",
    "count_deliveries",
    "count_fenced",
    "count_forgettable",
    "disable_endpoint",
    "enable_endpoint",
    "enqueue_deliveries",
    "find_damage",
    "find_delivery",
    "find_delivery_cursor",
    "find_file",
    "find_invalidation",
    "find_next_due",
    "find_node",
    "find_oldest_waiting",
    "find_request",
    "find_run",
    "finish_request",
    "finish_run",
    "forget_deliveries",
    "forget_requests",
    "give_back_requests",
    "has_delivery",
    "list_leases",
    "list_named",
    "list_requests",
    "list_waiting",
    "next_token",
    "open_catalog",
    "opened_aside",
    "read_attempts",
    "read_deliveries",
    "read_endpoint_states",
    "read_invalidations",
    "read_runs",
    "read_tasks",
    "read_view",
    "record_commit",
    "record_outcomes",
    "record_task",
    "record_unchanged",
    "release_claims",
    "release_lease",
    "renew_claims",
    "renew_leases",
    "replay_deliveries",
    "replay_delivery",
    "require_writable",
    "start_run",
    "swap",
]
