"""How held work is shown: what is stale or frozen, since when, how much waits, and how to settle it."""

from strandline.model.statuses import HeldState, HeldWork
from strandline.pages.wording import describe_held


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
