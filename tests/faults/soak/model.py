"""The expected result of what the soak sends, from the oracle of the fault suite."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.kinds.facts import accepted
from tests.faults.table_log import Row

Place = tuple[Any, ...]
"""File, revision and line."""

ITEM = ("id", "kind", "price", "at", "op")
RATE = ("kind", "percent", "at")
BLOCK = ("number", "hash", "parent", "weight")
_NUMBERS = ("price", "at", "percent", "number", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The lines of one source, and which of them are facts."""

    lines: Mapping[Place, str]
    facts: Mapping[Place, Row]


def read_sent(
    sent: Mapping[str, list[str]],
    part: int,
    folder: str,
    columns: tuple[str, ...],
    required: tuple[str, ...],
    needed: tuple[str, ...] = (),
) -> Sent:
    """`part` is the second number of a position: 0 for a file, 1 for a post.

    A fact with `op` D deletes. It requires the `needed` columns alone.
    """
    files = {path: lines for path, lines in sent.items() if path.startswith(f"{folder}/")}
    places = {
        (path, part, number): line for path, lines in files.items() for number, line in enumerate(lines, 1)
    }
    types = {c: "bigint" if c in _NUMBERS else "string" for c in columns}
    facts = accepted(
        places.items(), types, required, deletes=lambda fact: fact.get("op") == "D", needed=needed
    )
    return Sent(lines=places, facts=dict(facts))


def weigh(items: Iterable[Row], rates: Mapping[Any, Row], factor: int) -> dict[Any, tuple[int, int]]:
    """By kind: how many items, and their worth."""
    prices: dict[Any, list[int]] = defaultdict(list)
    for item in items:
        prices[item["kind"]].append(item["price"])
    return {
        kind: (len(of), sum(of) * rates[kind]["percent"] * factor)
        for kind, of in prices.items()
        if kind in rates
    }


def size_up(worth: Mapping[Any, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """By number of items: how many kinds, and their worth."""
    kinds = Counter(items for items, _ in worth.values())
    return {items: (n, sum(w for i, w in worth.values() if i == items)) for items, n in kinds.items()}
