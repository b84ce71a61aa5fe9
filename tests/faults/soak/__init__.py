"""A soak: a mixed load for minutes or hours with a random SIGKILL every 20 to 60 seconds.

The laws are checked at the end. `feed` writes the input and `model` computes the expected result. `driver` is
the process that works and is killed; `lives` starts, watches and kills it. `reader` queries meanwhile. `rest`
checks the laws when all work is done. `figures` prints the report.
"""
