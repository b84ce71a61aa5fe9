"""Fill a catalog from the tables alone: every commit of ours says what it read and wrote (L6)."""

from strandline.catalog import acquire_lease, release_lease
from strandline.lake.log import list_versions
from strandline.lake.state import read_token

from .desk import Desk
from .failpoints import reach
from .settle import settle


def rebuild(desk: Desk) -> None:
    """Record what each table's log says. Nothing is written to the lake."""
    reach("before-rebuild", "catalog")
    for node in desk.project.nodes:
        if list_versions(desk.lake.table(node.name)):
            token = read_token(desk.lake, node.name)
            lease = acquire_lease(
                desk.catalog, node.name, desk.holder, desk.project.settings.lease_seconds, token, True
            )
            settle(desk, node, lease)
            release_lease(desk.catalog, lease)
