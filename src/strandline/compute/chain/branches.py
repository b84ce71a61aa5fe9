"""Which blocks are canonical: the branch of the best head that is connected to the anchor.

This is plain arithmetic over announced blocks. A block's parent has the number before it, so a branch is
walked number by number, and a change is walked only as far as it reaches.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from strandline.model.project import HeadRule

Hash = Any
"""Of the same type as in the facts: text, bytes or a number."""
Place = tuple[int, Hash]
"""A block's number and hash. Announcements with one hash and two numbers are two blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block as it was first announced."""

    number: int
    hash: Hash
    parent: Hash | None
    weight: Any
    """What the head is chosen by: the value of the rule's column, or the number."""
    seen: tuple[Any, ...]
    """The source's own order. The lower was seen first."""

    @property
    def place(self) -> Place:
        return self.number, self.hash


class Announced(Protocol):
    """The blocks of one chain that were ever announced."""

    def between(self, low: int, high: int) -> Sequence[Block]:
        """Those with numbers from `low` to `high`, each hash once."""

    def count(self, low: int) -> int:
        """Number of blocks with numbers from `low` on, each hash once."""


class Canonical(Protocol):
    """The branch as it was published."""

    def hash_at(self, number: int) -> Hash | None: ...

    def tip(self) -> Block | None: ...

    def summed_after(self, number: int) -> Any:
        """The sum of the weights of its blocks with larger numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a change does to the canonical branch: numbers after `fork` become `branch`, and it ends there."""

    fork: int
    branch: tuple[Block, ...]
    old_tip: Block | None
    new_tip: Block

    @property
    def is_reorg(self) -> bool:
        """Whether a canonical block leaves."""
        return self.old_tip is not None and self.old_tip.number > self.fork

    @property
    def last(self) -> int:
        return max(self.new_tip.number, self.old_tip.number if self.old_tip else self.new_tip.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The effect of newly announced blocks.

    `step` None: the head stays. `joined` counts blocks that waited and are connected now, `waiting` new ones
    that are not connected.
    """

    step: Step | None
    joined: int
    waiting: int


def better(one: tuple[Any, tuple[Any, ...]], other: tuple[Any, tuple[Any, ...]] | None) -> bool:
    """A head is (weight, seen). The heavier wins; of equals the one that was seen first."""
    return other is None or one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])


@dataclass(slots=True)
class _Linked:
    """A connected block, and the weight of the branch up to it compared with the branch published before."""

    block: Block
    below: "_Linked | None"
    weight: Any


@dataclass(slots=True)
class _Walk:
    """Reads numbers in strides, and keeps those of the current stride."""

    announced: Announced
    stride: int
    low: int = 0
    high: int = -1
    by_number: dict[int, list[Block]] = field(default_factory=dict)

    def at(self, number: int) -> list[Block]:
        if not self.low <= number <= self.high:
            down = number < self.low and self.high >= 0
            self.low, self.high = (number - self.stride, number) if down else (number, number + self.stride)
            self.by_number = {}
            for block in self.announced.between(self.low, self.high):
                self.by_number.setdefault(block.number, []).append(block)
        return self.by_number.get(number, [])


def follow(
    rule: HeadRule,
    announced: Announced,
    canonical: Canonical,
    new: Iterable[Block],
    known: frozenset[Place],
    anchor: int,
    *,
    stride: int,
) -> Followed:
    """What newly announced blocks do to the branch. `known` are those that had been announced before.

    `stride` numbers are read at once.
    """
    walk = _Walk(announced, stride)
    tip = canonical.tip()
    fresh: dict[int, dict[Hash, Block]] = {}
    again: list[Block] = []
    for block in new:
        if block.number >= anchor:
            again.append(block) if block.place in known else fresh.setdefault(block.number, {}).setdefault(
                block.hash, block
            )
    linked: dict[Place, _Linked] = {}
    joined = waiting = 0
    level: dict[Hash, _Linked] = {}
    number = min(fresh, default=0)
    last = max(fresh, default=-1)
    while number <= last or level:
        if number not in fresh and not level:
            number = min(n for n in fresh if n > number)
            continue
        above: dict[Hash, _Linked] = {}
        for block in walk.at(number):
            is_new = block.hash in fresh.get(number, {})
            if block.parent in level:
                above[block.hash] = _link(rule, block, level[block.parent])
            elif is_new and (below := _find_below(rule, walk, canonical, block, anchor, linked)):
                above[block.hash] = _link(rule, block, below)
            elif is_new:
                waiting += 1
                continue
            else:
                continue
            joined += 0 if is_new else 1
        linked |= {one.block.place: one for one in above.values()}
        level, number = above, number + 1
    for announced_again in again:
        block = next(b for b in walk.at(announced_again.number) if b.hash == announced_again.hash)
        below = _find_below(rule, walk, canonical, block, anchor, linked)
        if below is not None and block.place not in linked:
            linked[block.place] = _link(rule, block, below)
    return Followed(step=_choose(rule, canonical, tip, linked), joined=joined, waiting=waiting)


def _link(rule: HeadRule, block: Block, below: _Linked | None) -> _Linked:
    if not rule.summed:
        return _Linked(block, below, block.weight)
    return _Linked(block, below, (below.weight if below is not None else 0) + block.weight)


def _find_below(
    rule: HeadRule, walk: _Walk, canonical: Canonical, block: Block, anchor: int, linked: dict[Place, _Linked]
) -> _Linked | None:
    """The connected block that this one is built on; None if it waits.

    Follows a side branch down to the canonical one.
    """
    trail: list[Block] = []
    at = block
    while True:
        if at.number == anchor:
            base = _on_canonical(rule, canonical, anchor - 1, "")
            break
        if (at.number - 1, at.parent) in linked:
            base = linked[at.number - 1, at.parent]
            break
        if at.parent is not None and canonical.hash_at(at.number - 1) == at.parent:
            base = _on_canonical(rule, canonical, at.number - 1, at.parent)
            break
        parent = next((b for b in walk.at(at.number - 1) if b.hash == at.parent), None)
        if parent is None:
            return None
        trail.append(parent)
        at = parent
    for side in reversed(trail):
        base = linked.setdefault(side.place, _link(rule, side, base))
    return base


def _on_canonical(rule: HeadRule, canonical: Canonical, number: int, hash_: Hash) -> _Linked:
    """The point where a branch leaves the canonical one, or starts. Its weight is relative to the old tip."""
    weight = -canonical.summed_after(number) if rule.summed else 0
    return _Linked(Block(number=number, hash=hash_, parent=None, weight=None, seen=()), None, weight)


def _choose(
    rule: HeadRule, canonical: Canonical, tip: Block | None, linked: dict[Place, _Linked]
) -> Step | None:
    best: _Linked | None = None
    at_stake = (0 if rule.summed else tip.weight, tip.seen) if tip is not None else None
    for one in linked.values():
        standing = (best.weight, best.block.seen) if best is not None else at_stake
        if (tip is None or one.block.place != tip.place) and better((one.weight, one.block.seen), standing):
            best = one
    if best is None:
        return None
    branch: list[Block] = []
    at: _Linked | None = best
    while (
        at is not None and at.block.weight is not None and canonical.hash_at(at.block.number) != at.block.hash
    ):
        branch.append(at.block)
        at = at.below
    assert at is not None  # every branch is built on the canonical one, or on the anchor
    return Step(fork=at.block.number, branch=tuple(reversed(branch)), old_tip=tip, new_tip=best.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The whole canonical branch: hash by number from the anchor on."""

    first: int
    hashes: tuple[Hash, ...]
    waiting: int


def build(rule: HeadRule, announced: Announced, anchor: int, *, stride: int) -> Built:
    """Walk every number from the anchor up, once, `stride` at a time. Only undecided branches are kept."""
    walk = _Walk(announced, stride)
    decided: list[Hash] = []
    level: dict[Hash, _Linked] = {b.hash: _link(rule, b, None) for b in walk.at(anchor)}
    best: _Linked | None = None
    connected, number = 0, anchor
    while level:
        connected += len(level)
        for one in level.values():
            if better((one.weight, one.block.seen), (best.weight, best.block.seen) if best else None):
                best = one
        if best is not None and number % stride == 0:
            _decide(decided, [*level.values(), best], anchor)
        number += 1
        level = {b.hash: _link(rule, b, level[b.parent]) for b in walk.at(number) if b.parent in level}
    tail: list[Hash] = []
    at = best
    while at is not None and at.block.number >= anchor + len(decided):
        tail.append(at.block.hash)
        at = at.below
    return Built(
        first=anchor, hashes=(*decided, *reversed(tail)), waiting=announced.count(anchor) - connected
    )


def _decide(decided: list[Hash], alive: list[_Linked], anchor: int) -> None:
    """Record what is below the lowest block that all live branches share, and forget it: it is decided."""
    floor = anchor + len(decided)
    heads = {id(one): one for one in alive}
    while len(heads) > 1:
        highest = max(heads.values(), key=lambda one: one.block.number)
        del heads[id(highest)]
        if highest.below is None or highest.block.number <= floor:
            return
        heads[id(highest.below)] = highest.below
    (shared,) = heads.values()
    settled: list[Hash] = []
    at: _Linked | None = shared
    while at is not None and at.block.number >= floor:
        settled.append(at.block.hash)
        at = at.below
    decided.extend(reversed(settled))
    shared.below = None
