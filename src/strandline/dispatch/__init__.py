"""Who goes next: plan -> tasks -> attempts -> commits. Leases, tokens, recovery; the only writer of the catalog.

Comes in: a `Plan` and a `Desk` (project, catalog, lake). Goes out: `TaskResult`s. Spark is started by the first attempt that needs it.
"""
