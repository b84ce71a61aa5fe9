"""Commit invalidations on a table: an empty commit carries them, by the same protocol as every other."""

from strandline.catalog import find_invalidation
from strandline.model.commits import Invalidation, Operation
from strandline.model.node import Node

from .desk import Desk
from .holding import holding


def commit_invalidations(desk: Desk, node: Node, invalidations: tuple[Invalidation, ...]) -> int:
    """The version of the commit. Readers are behind from there on.

    What this table already contains is not committed again: a request that is repeated after a crash is
    recorded once.
    """
    commit = desk.workers().commit_nothing
    with holding(desk, node) as held:
        # Taking the node has recorded every commit of ours, so the catalog knows what the table contains.
        known = find_invalidation(desk.catalog, invalidations[0].id)
        if known is not None:
            return known
        written = held.write(
            lambda: commit(desk, node, held.lease, Operation.INVALIDATE, invalidations=invalidations)
        )
        return held.record(written, held.rows).version
