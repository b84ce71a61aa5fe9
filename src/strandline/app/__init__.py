"""How it is wired: one function per verb, the clock, the workspace.

In: a folder and a request. Out: values that `cli` and `serve` render. Spark is started, through
`spark.session`, only by verbs that need it.
"""
