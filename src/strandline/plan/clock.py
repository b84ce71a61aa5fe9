"""The scope of a node that has to be computed again because `as_of` has moved."""

from strandline.model.catalog_records import NodeRecord
from strandline.model.node import Node
from strandline.model.scope import EVERYTHING, NOTHING, ClockMove, Scope
from strandline.model.traits import OnClock

from .draft import following
from .request import PlanRequest


def find_clock_scope(node: Node, record: NodeRecord, request: PlanRequest) -> Scope:
    """Empty for a node that does not depend on `as_of`, and while `as_of` is the recorded one."""
    now = request.as_of.isoformat()
    if record.as_of == now:
        return NOTHING
    match node.traits.clock:
        case OnClock.NOTHING:
            return NOTHING
        case OnClock.EVERYTHING:
            return EVERYTHING
        case OnClock.SCOPE:
            return following(node, (ClockMove(before=record.as_of, now=now),))
