"""Received -> facts -> results: one folder per kind of node.

In: a task with its inputs pinned. Out: `Prepared`, a write that is ready and not yet committed. Nothing here
commits, and nothing here knows the catalog.
"""
