"""Where data is stored: the only package that knows Delta.

In: DataFrames, and tickets from `dispatch`. Out: rows, increments, table states, commits. `log`, `state` and
`query` never start Spark; `reads`, `writes` and `staging` use it.
"""
