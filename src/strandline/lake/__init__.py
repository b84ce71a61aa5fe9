"""Where data lives: the only place that knows Delta.

Comes in: DataFrames and tickets from `dispatch`. Goes out: rows, increments, table states, commits.
`log`, `state` and `query` never start Spark; `session`, `reads`, `writes` and `staging` do.
"""
