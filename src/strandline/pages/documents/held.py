"""Held work: what is stale or frozen, since when, how much waits, and what settles it."""

from strandline.model.statuses import HeldNode, HeldWork


def held_document(work: HeldWork) -> dict[str, object]:
    """The fields that `run`, `plan` and `status` have in common."""
    return {"held": [_document(node) for node in work.nodes], "settle": work.command or None}


def _document(node: HeldNode) -> dict[str, object]:
    return {
        "node": node.node,
        "state": node.state,
        "reason": node.reason,
        "written_at": node.written_at,
        "waiting_rows": node.waiting_rows,
        "waiting_since": node.waiting_since,
        "backfill_rows": node.backfill_rows,
    }
