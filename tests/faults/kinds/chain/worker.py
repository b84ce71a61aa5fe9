"""The plain worker of chains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from strandline.compute.chain import worker as chains
from strandline.compute.chain.branches import Block, Step, build, follow
from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG, DELETED, KEY, POSITION
from strandline.model.commits import Operation
from strandline.model.project import Chain
from tests.faults.plain_work import (
    KEYED_COLUMNS,
    POSITION_COLUMN,
    Work,
    compare,
    declared,
    key_hash,
    live,
    place_of,
    write_rows,
    write_whole,
)
from tests.faults.table_log import Row

_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("hash", pa.string()),
        ("parent", pa.string()),
        ("weight", pa.int64()),
        POSITION_COLUMN,
        *KEYED_COLUMNS,
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """`branches.Announced` over rows."""

    blocks: Mapping[str, Block]

    def between(self, low: int, high: int) -> list[Block]:
        return [b for b in self.blocks.values() if low <= b.number <= high]

    def count(self, low: int) -> int:
        return sum(b.number >= low for b in self.blocks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`branches.Canonical` over rows."""

    blocks: Mapping[int, Block]

    def hash_at(self, number: int) -> str | None:
        return self.blocks[number].hash if number in self.blocks else None

    def tip(self) -> Block | None:
        return self.blocks[max(self.blocks)] if self.blocks else None

    def summed_after(self, number: int) -> Any:
        raise AssertionError("the chain goes by its heaviest block")


def prepare(work: Work) -> Prepared:
    """Walk the branches that newly announced blocks reach, or all branches.

    A reorganisation is one commit together with its invalidation.
    """
    chain = work.node.definition
    assert isinstance(chain, Chain)
    (given,) = work.node.inputs
    first = first_announced(work.read(given.dataset))
    announced = Announced(blocks={hash_: _block(row) for hash_, row in first.items()})
    own = None if work.task.overwrite else work.read_own()
    if own is None:
        return _build(work, chain, announced, first, None)
    walked = None if work.full else _walk(work, chain, announced, live(own))
    if walked is None:
        return _build(work, chain, announced, first, live(own))
    hashes, waiting, step = walked
    old = [row for row in live(own) if row["number"] in hashes]
    prepared = compare(work, _SCHEMA, canonical_rows(work, first, hashes), old, bury=True)
    counted = write_rows(Operation.COUNTS, _SCHEMA, []) if waiting else None
    invalidations = (chains._invalidation(work, chain, (), step),) if step and step.is_reorg else ()  # type: ignore[arg-type]
    return replace(
        prepared,
        write=prepared.write or counted,
        counts={"waiting": waiting} if waiting else {},
        invalidations=invalidations,
    )


def _build(
    work: Work, chain: Chain, announced: Announced, first: Mapping[str, Row], own: Sequence[Row] | None
) -> Prepared:
    """The whole chain, compared with what is there; None where no table is."""
    lowest = min((b.number for b in announced.blocks.values()), default=0)
    built = build(chain.head, announced, lowest, stride=1000)
    rows = canonical_rows(work, first, dict(enumerate(built.hashes, built.first)))
    prepared = write_whole(_SCHEMA, rows) if own is None else compare(work, _SCHEMA, rows, own, bury=True)
    return replace(
        prepared,
        whole=True,
        write=prepared.write or write_rows(Operation.COUNTS, _SCHEMA, []),
        counts={"waiting": built.waiting},
    )


def _walk(
    work: Work, chain: Chain, announced: Announced, own: Sequence[Row]
) -> tuple[dict[int, str | None], int, Step | None] | None:
    """The canonical hash of each number at stake, how many more blocks wait, and the step.

    None if a block below all others was announced: it moves the anchor, and the whole chain is built again.
    """
    dataset = work.node.inputs[0].dataset
    new = [_block(row) for row in first_announced(work.read_added(dataset)).values()]
    before = {row["hash"]: row["number"] for row in work.read_before(dataset)}
    if not new:
        return {}, 0, None
    lowest = min(b.number for b in new)
    anchor = min(before.values(), default=lowest)
    if lowest < anchor:
        return None
    published = Published(blocks={row["number"]: announced.blocks[row["hash"]] for row in own})
    known = frozenset((number, hash_) for hash_, number in before.items())
    found = follow(chain.head, announced, published, new, known, anchor, stride=1000)
    hashes: dict[int, str | None] = {
        b.number: b.hash for b in new if b.hash in before and published.hash_at(b.number) == b.hash
    }
    if found.step is not None:
        branch = {b.number: b.hash for b in found.step.branch}
        hashes |= {number: branch.get(number) for number in range(found.step.fork + 1, found.step.last + 1)}
    return hashes, found.waiting - found.joined, found.step


def canonical_rows(work: Work, first: Mapping[str, Row], hashes: Mapping[int, str | None]) -> list[Row]:
    """The canonical blocks as they were first announced."""
    rows = [first[hash_] for hash_ in hashes.values() if hash_ is not None]
    beside = {DELETED: False, CONFIG: work.config.hash}
    return [
        {**declared(row), POSITION: row[POSITION], KEY: key_hash((row["number"],)), **beside} for row in rows
    ]


def first_announced(rows: Iterable[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in sorted(rows, key=place_of):
        found.setdefault(row["hash"], row)
    return found


def _block(row: Row) -> Block:
    return Block(
        number=row["number"],
        hash=row["hash"],
        parent=row["parent"],
        weight=row["weight"],
        seen=(*place_of(row), row["hash"]),
    )
