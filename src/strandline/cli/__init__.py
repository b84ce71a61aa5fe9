"""The command line: one module per verb, which parses and renders and never decides.

In: words, and values of `app`. Out: data to stdout, progress and errors to stderr, an exit code. Nothing
heavy is imported here: a verb's module is loaded when the verb is called, and Spark only when there is work
for it.
"""

from .entry import main

__all__ = ["main"]
