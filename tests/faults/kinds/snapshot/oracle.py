"""What a snapshot must contain, in plain Python that knows nothing of the engine."""

from collections.abc import Iterable
from typing import Any

from tests.faults.evidence import Evidence, only, require
from tests.faults.hashing import hash_row
from tests.faults.kinds.facts import Fact, facts_sent
from tests.faults.kinds.kind import Stream
from tests.faults.plain_work import Key, place_of, values_of
from tests.faults.table_log import Row


def check(evidence: Evidence) -> None:
    """L2, L3: the latest of the facts that the last commit read, by key; at rest, of all that were sent."""
    for stream in evidence.world.streams:
        if not stream.key:
            continue
        if inputs := evidence.inputs(stream.dataset):
            facts = inputs[f"{stream.dataset}_facts"]
            _check_latest(evidence, stream, ((place_of(r), only(r, stream.columns)) for r in facts))
        if evidence.at_rest:
            _check_latest(evidence, stream, facts_sent(evidence, stream))


def _check_latest(evidence: Evidence, stream: Stream, facts: Iterable[Fact]) -> None:
    rows = evidence.live(stream.dataset)
    seen = {values_of(row, stream.key): only(row, stream.columns) for row in rows}
    expected = latest(facts, *stream.key)
    require(len(rows) == len(seen), f"L3 {stream.dataset} once", rows)
    require(seen == expected, f"L2 {stream.dataset}", seen, expected)


def latest(facts: Iterable[Fact], *key: str) -> dict[Key, Row]:
    """L3: the largest row by `at`, then by a hash of the row, then by place. A deleting row hides its key."""

    def rank(fact: Fact) -> tuple[Any, ...]:
        place, row = fact
        return (row["at"], hash_row(row), place)

    best: dict[Key, Fact] = {}
    for fact in facts:
        of_key = values_of(fact[1], key)
        best[of_key] = fact if of_key not in best else max(best[of_key], fact, key=rank)
    return {of_key: row for of_key, (_, row) in best.items() if row.get("op") != "D"}
