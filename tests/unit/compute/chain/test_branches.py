"""The canonical branch: incremental equals a walk over all blocks (L2).

This holds for any arrival order, batch split and rule.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.compute.chain import branches
from strandline.compute.chain.branches import Block, build, follow
from strandline.compute.chain.oracle import find_canonical
from strandline.model.errors import Place
from strandline.model.project import Chain, Head, HeadRule

RULES = [
    HeadRule(kind=Head.LONGEST),
    *(HeadRule(kind=kind, column="w") for kind in (Head.MOST, Head.MOST_SUMMED, Head.LAST)),
]


class Ledger:
    """Announced blocks and a published branch, in memory."""

    def __init__(self, rule: HeadRule, stride: int = 2000) -> None:
        self.rule = rule
        self.stride = stride
        self.known: dict[str, Block] = {}
        self.branch: dict[int, str] = {}
        self.asked: set[int] = set()

    def between(self, low: int, high: int) -> Sequence[Block]:
        self.asked |= {b.number for b in self.known.values() if low <= b.number <= high}
        return [b for b in self.known.values() if low <= b.number <= high]

    def count(self, low: int) -> int:
        return sum(1 for b in self.known.values() if b.number >= low)

    def hash_at(self, number: int) -> str | None:
        return self.branch.get(number)

    def tip(self) -> Block | None:
        return self.known[self.branch[max(self.branch)]] if self.branch else None

    def summed_after(self, number: int) -> Any:
        return sum(self.known[h].weight for n, h in self.branch.items() if n > number)

    def announce(self, blocks: Iterable[Block], anchor: int) -> branches.Followed:
        listed = list(blocks)
        before = frozenset(self.known)
        for block in listed:
            self.known.setdefault(block.hash, block)
        known = frozenset(b.place for b in listed if b.hash in before)
        followed = follow(self.rule, self, self, listed, known, anchor, stride=self.stride)
        if followed.step is not None:
            for number in [n for n in self.branch if n > followed.step.fork]:
                del self.branch[number]
            self.branch |= {b.number: b.hash for b in followed.step.branch}
        return followed

    def rebuilt(self, anchor: int) -> dict[int, str]:
        built = build(self.rule, self, anchor, stride=self.stride)
        return {built.first + i: h for i, h in enumerate(built.hashes)}


def make_tree(chance: random.Random, size: int, rule: HeadRule, anchor: int) -> list[Block]:
    """Blocks mostly at the top, sometimes on a side branch. Some parents are never announced."""
    blocks: list[Block] = []
    for i in range(size):
        if not blocks or chance.random() < 0.06:
            number, parent, total = anchor, None, 0
        elif chance.random() < 0.05:
            number, parent, total = anchor + chance.randrange(1, 6), "nobody", 0
        else:
            below = blocks[max(0, len(blocks) - 1 - int(chance.expovariate(0.6)))]
            number, parent, total = (
                below.number + 1,
                below.hash,
                below.weight if rule.kind is Head.MOST else 0,
            )
        weight = {
            Head.LONGEST: number,
            Head.MOST: total + chance.randrange(1, 3),
            Head.MOST_SUMMED: chance.randrange(1, 4),
            Head.LAST: chance.randrange(40),
        }[rule.kind]
        blocks.append(Block(number=number, hash=f"h{i}", parent=parent, weight=weight, seen=(i,)))
    return blocks


@pytest.mark.parametrize("rule", RULES, ids=lambda r: str(r.kind))
@given(
    seed=st.integers(0, 10**9),
    size=st.integers(1, 40),
    batch=st.integers(1, 9),
    stride=st.sampled_from((1, 3, 2000)),
)
@settings(max_examples=150)
def test_any_order_and_split_gives_the_branch_of_a_whole_walk(
    rule: HeadRule, seed: int, size: int, batch: int, stride: int
) -> None:
    chance = random.Random(seed)
    tree = make_tree(chance, size, rule, anchor=5)
    order = [*tree, *chance.choices(tree, k=3)]
    chance.shuffle(order)
    ledger = Ledger(rule, stride)
    waiting = 0
    for start in range(0, len(order), batch):
        followed = ledger.announce(order[start : start + batch], anchor=5)
        waiting += followed.waiting - followed.joined
        assert ledger.branch == ledger.rebuilt(5)
        assert waiting == build(rule, ledger, 5, stride=ledger.stride).waiting
    whole = Ledger(rule)
    whole.announce(tree, anchor=5)
    assert whole.branch == ledger.branch
    place = Place(file="strandline.yaml", line=1)
    declared = Chain(
        name="c",
        place=place,
        blocks="b",
        number="n",
        hash="h",
        parent="p",
        head=rule,
        order_by=("seq",),
        anchor=5,
    )
    announcements = [(b.number, b.hash, b.parent, b.weight, b.seen) for b in tree]
    assert dict(find_canonical(declared, announcements)) == ledger.branch, (
        "the oracle of `verify`, which shares nothing with the walk"
    )


def chain(first: int, last: int, name: str, parent: str | None, weight: int | None = None) -> list[Block]:
    blocks = []
    for number in range(first, last + 1):
        blocks.append(
            Block(
                number=number,
                hash=f"{name}{number}",
                parent=parent,
                weight=weight or number,
                seen=(name, number),
            )
        )
        parent = f"{name}{number}"
    return blocks


def test_a_reorg_is_told_from_growth_and_a_return_is_one_too() -> None:
    ledger = Ledger(HeadRule(kind=Head.MOST_SUMMED, column="w"))
    grown = ledger.announce(chain(1, 10, "a", None, 1), 1).step
    assert grown is not None
    assert not grown.is_reorg
    away = ledger.announce(chain(6, 11, "b", "a5", 1), 1).step
    assert away is not None
    assert (away.is_reorg, away.fork, away.last, away.old_tip and away.old_tip.hash, away.new_tip.hash) == (
        True,
        5,
        11,
        "a10",
        "b11",
    )
    back = ledger.announce(chain(11, 12, "a", "a10", 1), 1).step
    assert back is not None
    assert (back.is_reorg, back.fork, [b.hash for b in back.branch]) == (
        True,
        5,
        ["a6", "a7", "a8", "a9", "a10", "a11", "a12"],
    )
    assert ledger.announce(chain(11, 12, "a", "a10", 1), 1).step is None  # the same tip announced twice


def test_only_the_numbers_a_change_reaches_are_walked() -> None:
    ledger = Ledger(HeadRule(kind=Head.LONGEST), stride=10)
    ledger.announce(chain(1, 3000, "a", None), 1)
    ledger.asked.clear()
    ledger.announce(chain(2000, 2003, "b", "a1999"), 1)  # a side branch that wins nothing
    ledger.announce(chain(3001, 3001, "a", "a3000"), 1)
    assert len(ledger.asked) < 60
    assert ledger.branch[3001] == "a3001"


def test_a_whole_walk_keeps_no_more_than_what_is_undecided() -> None:
    ledger = Ledger(HeadRule(kind=Head.LONGEST), stride=16)
    for block in [*chain(1, 500, "a", None), *chain(200, 300, "b", "a199"), *chain(450, 520, "c", "a449")]:
        ledger.known[block.hash] = block
    expected = {n: f"a{n}" for n in range(1, 450)} | {n: f"c{n}" for n in range(450, 521)}
    assert ledger.rebuilt(1) == expected
