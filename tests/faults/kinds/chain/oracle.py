"""Which branch is canonical, in plain Python that knows nothing of the engine."""

from collections.abc import Iterable, Mapping

from tests.faults.evidence import Evidence, only, require
from tests.faults.kinds.facts import Fact, facts_sent
from tests.faults.plain_work import place_of
from tests.faults.table_log import Row

from .data import BLOCKS


def check(evidence: Evidence) -> None:
    """L2, L8: the best branch of the blocks that the last commit has read; at rest, of all that were sent."""
    if inputs := evidence.inputs("main"):
        branch, _ = canonical((place_of(r), only(r, BLOCKS.columns)) for r in inputs["block_facts"])
        _check_branch(evidence, branch)
    if evidence.at_rest:
        branch, waiting = canonical(facts_sent(evidence, BLOCKS))
        _check_branch(evidence, branch)
        counts = evidence.nodes["main"].counts
        require(counts.get("waiting", 0) == waiting, "L10 blocks that wait", counts, waiting)


def _check_branch(evidence: Evidence, branch: Mapping[int, Row]) -> None:
    """L2, L8: one block a number, and all of one branch."""
    rows = [only(row, BLOCKS.columns) for row in evidence.live("main")]
    require(sorted(r["number"] for r in rows) == sorted(branch), "L8 one block a number", rows, branch)
    require(all(branch[r["number"]] == r for r in rows), "L2 main", rows, branch)


def canonical(facts: Iterable[Fact]) -> tuple[dict[int, Row], int]:
    """The canonical block of each number, and how many blocks wait for one below them.

    The canonical branch ends in the heaviest head that is connected to the lowest number. Of equally heavy
    heads the one that was announced first counts.
    """
    first: dict[str, Fact] = {}
    for place, row in sorted(facts, key=lambda fact: fact[0]):
        first.setdefault(row["hash"], (place, row))
    lowest = min((row["number"] for _, row in first.values()), default=0)

    def descend(row: Row) -> list[Row]:
        """The branch from a block down to the lowest number; nothing if it ends before."""
        branch = [row]
        while branch[-1]["number"] > lowest:
            _, below = first.get(branch[-1]["parent"], ((), None))
            if below is None or below["number"] != branch[-1]["number"] - 1:
                return []
            branch.append(below)
        return branch

    heads = [(-row["weight"], place, row["hash"]) for place, row in first.values() if descend(row)]
    best = descend(first[min(heads)[-1]][1]) if heads else []
    return {row["number"]: row for row in best}, len(first) - len(heads)
