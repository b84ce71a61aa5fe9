"""The JSON documents of answers, one module for each kind.

In: the values that `app` returns. Out: plain mappings, the same for the command line and the server. Nothing
here reads or decides. Whoever prints a document adds its schema.
"""
