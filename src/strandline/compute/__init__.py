"""Received -> facts -> results: one module per kind of node.

Comes in: a task with its inputs pinned. Goes out: `Prepared`, a write that is ready and not yet committed. Nothing here commits,
and nothing here knows the catalog.
"""
