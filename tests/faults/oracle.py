"""What must come of the lines that were sent, in plain Python that knows nothing of the engine."""

import json
from collections.abc import Iterable
from typing import Any

from .hashing import hash_row

Row = dict[str, Any]
Fact = tuple[tuple[Any, ...], Row]
"""A fact with its place: file, revision and line."""
_NUMBERS = ("price", "at", "percent", "number", "weight")


def accepted(
    lines: Iterable[tuple[tuple[Any, ...], str]], columns: tuple[str, ...], required: tuple[str, ...]
) -> list[Fact]:
    """The lines that are facts: they parse, nothing required is NULL, numbers are numbers."""
    facts = []
    for place, text in lines:
        try:
            message = json.loads(text)
        except ValueError:
            continue
        fact = {c: message.get(c) for c in columns}
        numbers = [fact[c] for c in _NUMBERS if fact.get(c) is not None]
        if all(fact[c] is not None for c in required) and all(isinstance(n, int) for n in numbers):
            facts.append((place, fact))
    return facts


def latest(facts: Iterable[Fact], key: str) -> dict[Any, Row]:
    """L3: the largest by `at`, then by a hash of the row, then by place. Whole rows; a deleting one hides its key."""

    def rank(fact: Fact) -> tuple[Any, ...]:
        place, row = fact
        return (row["at"], hash_row(row), place)

    best: dict[Any, Fact] = {}
    for fact in facts:
        of_key = fact[1][key]
        best[of_key] = fact if of_key not in best else max(best[of_key], fact, key=rank)
    return {of_key: row for of_key, (_, row) in best.items() if row.get("op") != "D"}


def canonical(facts: Iterable[Fact]) -> tuple[dict[int, Row], int]:
    """By number: the branch of the heaviest head connected to the lowest number, of equals the first announced. And how many wait."""
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
