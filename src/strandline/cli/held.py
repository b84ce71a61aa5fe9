"""How held work is shown: what is stale or frozen, since when, how much waits, and how to settle it."""

from strandline.model.statuses import HeldNode, HeldState, HeldWork
from strandline.pages.wording import describe_held


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


def render_held(work: HeldWork) -> list[str]:
    """The block that ends `plan`, `run` and `status`. Empty if nothing is held."""
    if not work.nodes:
        return []
    lines = ["", "WARNING: not everything follows the current configuration."]
    titles = {
        HeldState.FROZEN: "Frozen: nothing is written, the last published state stays.",
        HeldState.STALE: "Stale: new work uses the new configuration, older rows do not.",
        HeldState.HELD: "Held: not computed, because an input has rows of an older configuration.",
    }
    for state, title in titles.items():
        if nodes := [node for node in work.nodes if node.state is state]:
            lines += [f"  {title}", *(f"    {describe_held(node)}" for node in nodes)]
    return [*lines, f"  This settles all of it: {work.command}"]
