"""Commit invalidations on a table: an empty commit that carries them, by the same protocol as every other (DESIGN 6)."""

from strandline.model.commits import Invalidation
from strandline.model.node import Node

from .commit import record_entry, write_and_confirm
from .desk import Desk
from .settle import give_back, take


def commit_invalidations(desk: Desk, node: Node, invalidations: tuple[Invalidation, ...]) -> int:
    """The version of the commit. Readers are behind from there on."""
    from .workers import commit_invalidation

    lease, _ = take(desk, node, rebuilds=False)
    try:
        own, rows = (
            desk.pins.get(node.name).version,
            desk.pins.rows(node.name),
        )  # as settled: the catalog may have missed commits
        entry, _ = write_and_confirm(
            desk, node, lease, own, lambda: commit_invalidation(desk, node, lease, invalidations)
        )
        return record_entry(desk, node, lease, entry, rows).version
    except BaseException as error:
        give_back(desk, node, lease, error)
        raise
