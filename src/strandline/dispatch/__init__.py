"""From plan to commits: tasks, attempts, leases, tokens, recovery. The only writer of the catalog.

In: a `Plan` and a `Desk` (project, catalog, lake). Out: `TaskResult`s. The first attempt that needs Spark
starts it.
"""
