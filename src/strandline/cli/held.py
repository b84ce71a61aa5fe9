"""How held work is told: what is stale or frozen, since when, how much waits, and the one command that settles all of it."""

from strandline.app.held import HeldNode, HeldState, HeldWork

from .tables import moment, plural

_NAMED = 5
"""Partitions that are named; the rest is counted."""


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
    """The block that ends `plan`, `run` and `status`; nothing where nothing is held."""
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


def describe_held(node: HeldNode) -> str:
    """`orders_facts: `key` changed; last written 2024-01-12 08:00:00; 5 facts wait since 2024-01-13 09:00:00; ...`"""
    parts = [f"{node.node}: {node.reason}{_name_partitions(node)}"]
    if node.written_at:
        parts.append(f"last written {moment(node.written_at)}")
    parts.append(_describe_waiting(node))
    parts.append(f"a backfill reads about {plural(node.backfill_rows, 'row')}")
    return "; ".join(parts)


def _describe_waiting(node: HeldNode) -> str:
    if node.state is HeldState.STALE:
        return f"at most {plural(node.waiting_rows, 'row')} of an older configuration"
    if not node.waiting_rows:
        return "nothing new waits for it"
    since = f" since {moment(node.waiting_since)}" if node.waiting_since else ""
    return f"{plural(node.waiting_rows, 'new row')} {'waits' if node.waiting_rows == 1 else 'wait'} for it{since}"


def _name_partitions(node: HeldNode) -> str:
    if not node.partitions:
        return ""
    more = f" and {len(node.partitions) - _NAMED:,} more" if len(node.partitions) > _NAMED else ""
    return f" in {', '.join(node.partitions[:_NAMED])}{more}"
