"""Commit invalidations on a table: an empty commit carries them, by the same protocol as every other."""

from strandline.model.commits import Invalidation, Operation
from strandline.model.node import Node

from .desk import Desk
from .holding import holding


def commit_invalidations(desk: Desk, node: Node, invalidations: tuple[Invalidation, ...]) -> int:
    """The version of the commit. Readers are behind from there on."""
    commit = desk.workers().commit_nothing
    with holding(desk, node) as held:
        written = held.write(
            lambda: commit(desk, node, held.lease, Operation.INVALIDATE, invalidations=invalidations)
        )
        return held.record(written, held.rows).version
