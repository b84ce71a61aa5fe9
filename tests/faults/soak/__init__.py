"""A soak: a mixed load for minutes or hours, a random SIGKILL every 20 to 60 seconds, and the laws at the end.

`feed` sends and `model` says what must come of it; `driver` is the process that works and dies; `lives` starts, watches and kills it;
`reader` looks on meanwhile; `rest` checks the laws when all is quiet; `figures` tells.
"""
