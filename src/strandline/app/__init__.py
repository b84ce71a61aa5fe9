"""How it is wired: one function per verb, the clock, the workspace.

Comes in: a folder and a request. Goes out: values that `cli` and `serve` render. Spark is started lazily, through `lake.session`, by verbs that work.
"""
