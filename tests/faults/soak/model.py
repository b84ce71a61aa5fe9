"""What must come of the lines that were sent, in plain Python that knows nothing of the engine."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.hashing import hash_row

Place = tuple[str, int, int]
"""File, revision and line."""
Row = dict[str, Any]

ITEM = ("id", "kind", "price", "at", "op")
RATE = ("kind", "percent", "at")
BLOCK = ("number", "hash", "parent", "weight")
_NUMBERS = ("price", "at", "percent", "number", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The lines of one source, and which of them are facts."""

    lines: Mapping[Place, str]
    facts: Mapping[Place, Row]


def read_sent(sent: Mapping[str, list[str]], folder: str, columns: tuple[str, ...], required: tuple[str, ...]) -> Sent:
    """A line is a fact if it parses, nothing required is missing and numbers are numbers."""
    files = {path: lines for path, lines in sent.items() if path.startswith(f"{folder}/")}
    places = {(path, 0, number): line for path, lines in files.items() for number, line in enumerate(lines, 1)}
    facts = {place: row for place, line in places.items() if (row := _decode(line, columns, required)) is not None}
    return Sent(lines=places, facts=facts)


def _decode(line: str, columns: tuple[str, ...], required: tuple[str, ...]) -> Row | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    row = {column: message.get(column) for column in columns}
    numbers = all(isinstance(row[c], int) for c in columns if c in _NUMBERS and row[c] is not None)
    return row if numbers and all(row[c] is not None for c in required) else None


def latest(facts: Mapping[Place, Row], key: str) -> dict[Any, Row]:
    """L3: the largest by `at`, then by a hash of the row, then by place; a deleting fact hides its key."""
    best: dict[Any, tuple[tuple[Any, ...], Row]] = {}
    for place, row in facts.items():
        rank = (row["at"], hash_row(row), place)
        if row[key] not in best or rank > best[row[key]][0]:
            best[row[key]] = (rank, row)
    return {value: row for value, (_, row) in best.items() if row.get("op") != "D"}


def weigh(items: Iterable[Row], rates: Mapping[Any, Row], factor: int) -> dict[Any, tuple[int, int]]:
    """By kind: how many items, and their worth."""
    prices: dict[Any, list[int]] = defaultdict(list)
    for item in items:
        prices[item["kind"]].append(item["price"])
    return {kind: (len(of), sum(of) * rates[kind]["percent"] * factor) for kind, of in prices.items() if kind in rates}


def size_up(worth: Mapping[Any, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """By number of items: how many kinds, and their worth."""
    kinds = Counter(items for items, _ in worth.values())
    return {items: (n, sum(w for i, w in worth.values() if i == items)) for items, n in kinds.items()}


def canonical(blocks: Iterable[Row]) -> dict[int, str]:
    """By number: the blocks of the heaviest branch that reaches the first one."""
    by_hash = {block["hash"]: block for block in blocks}
    for head in sorted(by_hash.values(), key=lambda block: block["weight"], reverse=True):
        branch, block = {head["number"]: head["hash"]}, head
        while block["number"] > 1 and block["parent"] in by_hash:
            block = by_hash[block["parent"]]
            branch[block["number"]] = block["hash"]
        if block["number"] == 1:
            return branch
    return {}
