"""How it is wired: one function per verb, the clock, the workspace.

Comes in: a folder and a request. Goes out: values that `cli` and `serve` render. Spark is started, through `lake.session`, only by
verbs that work.
"""
