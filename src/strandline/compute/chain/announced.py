"""Blocks read through delta-rs, announced or published, a range of numbers at a time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from strandline.lake.location import Lake
from strandline.lake.reads import read_added_rows
from strandline.lake.table import Table, get_table
from strandline.model.columns import DELETED, POSITION
from strandline.model.project import Chain, Head
from strandline.sql.literals import datafusion_literal, datafusion_name

from .branches import Block, Hash

Group = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTable:
    """A table of blocks at a version: the facts, or the chain itself."""

    lake: Lake
    dataset: str
    version: int
    chain: Chain
    live_only: bool
    _opened: list[Table] = field(default_factory=list)

    def query(self, select: str, where: str, then: str = "") -> pa.Table:
        if not self._opened:
            self._opened.append(get_table(self.lake.table(self.dataset), self.version))
        live = f' AND NOT "{DELETED}"' if self.live_only else ""
        return self._opened[0].ask(f"SELECT {select} FROM t WHERE {where}{live} {then}")

    def blocks(self, group: Group, low: int, high: int) -> list[Block]:
        """One per hash, as first announced."""
        number = datafusion_name(self.chain.number)
        where = f"{number} >= {low} AND {number} <= {high} AND {group_condition(self.chain, group)}"
        table = self.query(", ".join(map(datafusion_name, block_columns(self.chain))), where)
        return [b for g, b in read_blocks(self.chain, table) if g == group]

    def groups(self) -> list[Group]:
        if not self.chain.group_by:
            return [()]
        return rows_of(self.query(f"DISTINCT {', '.join(map(datafusion_name, self.chain.group_by))}", "true"))

    def bounds(self, group: Group) -> tuple[int | None, int | None]:
        """The lowest and the highest number of a block that has a hash."""
        number = datafusion_name(self.chain.number)
        where = f"{datafusion_name(self.chain.hash)} IS NOT NULL AND {group_condition(self.chain, group)}"
        names = ", ".join(map(datafusion_name, self.chain.group_by))
        grouped = f"GROUP BY {names}" if names else ""
        select = f"{names}{', ' if names else ''}min({number}) AS low, max({number}) AS high"
        rows = rows_of(self.query(select, where, grouped))
        return next(
            ((_whole(low), _whole(high)) for *own, low, high in rows if tuple(own) == group), (None, None)
        )

    def count(self, group: Group, low: int) -> int:
        """Number of blocks from `low` on. Each number and hash counts once."""
        number, hash_name = datafusion_name(self.chain.number), datafusion_name(self.chain.hash)
        where = f"{number} >= {low} AND {hash_name} IS NOT NULL AND {group_condition(self.chain, group)}"
        names = ", ".join(map(datafusion_name, (*self.chain.group_by, self.chain.number, self.chain.hash)))
        return sum(1 for *own, _, _ in rows_of(self.query(f"DISTINCT {names}", where)) if tuple(own) == group)

    def hashes(self, group: Group, low: int, high: int) -> dict[int, Hash]:
        number = datafusion_name(self.chain.number)
        where = f"{number} >= {low} AND {number} <= {high} AND {group_condition(self.chain, group)}"
        names = ", ".join(map(datafusion_name, (self.chain.number, self.chain.hash, *self.chain.group_by)))
        return {int(n): h for n, h, *own in rows_of(self.query(names, where)) if tuple(own) == group}


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def group_condition(chain: Chain, group: Group) -> str:
    """A condition for the rows of one chain. Rows of others may match too.

    A value without a literal is left out, and whoever reads the answer must check it.
    """
    parts = []
    for column, value in zip(chain.group_by, group, strict=True):
        literal = datafusion_literal(value)
        if value is None:
            parts.append(f"{datafusion_name(column)} IS NULL")
        elif literal is not None:
            parts.append(f"{datafusion_name(column)} = {literal}")
    return " AND ".join(parts) or "true"


def block_columns(chain: Chain) -> list[str]:
    head = [chain.head.column] if chain.head.column else []
    return list(
        dict.fromkeys(
            [*chain.group_by, chain.number, chain.hash, chain.parent, *head, *chain.order_by, POSITION]
        )
    )


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [_values(table.column(i)) for i in range(table.num_columns)]
    return list(zip(*columns, strict=True)) if columns else []


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Python's values. Instants are microseconds, which have no first and no last year."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return list(column.to_pylist())


def read_blocks(chain: Chain, table: pa.Table) -> list[tuple[Group, Block]]:
    """Blocks with the chain each belongs to, one per number and hash.

    A row without number or hash is not a block.
    """
    columns = {name: _values(table.column(name)) for name in block_columns(chain)}
    blocks: dict[tuple[Group, int, Hash], Block] = {}
    for i in range(table.num_rows):
        number, hash_ = columns[chain.number][i], columns[chain.hash][i]
        if number is None or hash_ is None:
            continue
        group = tuple(columns[c][i] for c in chain.group_by)
        block = Block(
            number=int(number),
            hash=hash_,
            parent=columns[chain.parent][i],
            weight=_weigh(chain, int(number), columns[chain.head.column][i] if chain.head.column else None),
            seen=(*(_ordered(columns[c][i]) for c in chain.order_by), _ordered(columns[POSITION][i]), hash_),
        )
        known = blocks.get((group, *block.place))
        blocks[group, *block.place] = block if known is None else first_announced(chain, known, block)
    return [(group, block) for (group, _, _), block in blocks.items()]


def first_announced(chain: Chain, one: Block, other: Block) -> Block:
    """The earlier of two announcements of a block. Under `last` it counts as seen when it was seen last."""
    first, later = (one, other) if one.seen <= other.seen else (other, one)
    if chain.head.kind is not Head.LAST or first.weight >= later.weight:
        return first
    return Block(
        number=first.number, hash=first.hash, parent=first.parent, weight=later.weight, seen=first.seen
    )


def _weigh(chain: Chain, number: int, value: Any) -> Any:
    match chain.head.kind:
        case Head.LONGEST:
            return number
        case Head.MOST_SUMMED:
            return Fraction(value) if value is not None else Fraction(0)
        case _:
            return _ordered(value)


def _ordered(value: Any) -> tuple[Any, ...]:
    """Comparable whatever it is: NULL sorts first and NaN last, a position by its parts."""
    if isinstance(value, Mapping):
        return (1, *(_ordered(v) for v in value.values()))
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (0,) if value is None else (1, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedGroup:
    """`branches.Announced` over the facts of one chain."""

    facts: BlockTable
    group: Group

    def between(self, low: int, high: int) -> Sequence[Block]:
        return self.facts.blocks(self.group, low, high)

    def count(self, low: int) -> int:
        return self.facts.count(self.group, low)


@dataclass(slots=True, kw_only=True)
class PublishedGroup:
    """`branches.Canonical` over the chain's own table, for one chain."""

    own: BlockTable
    facts: BlockTable
    group: Group
    stride: int
    _low: int = 0
    _high: int = -1
    _hashes: dict[int, Hash] = field(default_factory=dict)

    def hash_at(self, number: int) -> Hash | None:
        if not self._low <= number <= self._high:
            self._low, self._high = number - self.stride, number + self.stride
            self._hashes = self.own.hashes(self.group, self._low, self._high)
        return self._hashes.get(number)

    def tip(self) -> Block | None:
        number = self.own.bounds(self.group)[1]
        if number is None:
            return None
        hash_ = self.hash_at(number)
        return next((b for b in self.facts.blocks(self.group, number, number) if b.hash == hash_), None)

    def summed_after(self, number: int) -> Any:
        last = self.own.bounds(self.group)[1]
        starts = range(number + 1, (number if last is None else last) + 1, self.stride)
        return sum(
            (b.weight for low in starts for b in self.own.blocks(self.group, low, low + self.stride - 1)),
            Fraction(0),
        )


def read_new(lake: Lake, chain: Chain, dataset: str, after: int, upto: int) -> list[tuple[Group, Block]]:
    """The blocks that facts added since a version announce."""
    return read_blocks(chain, read_added_rows(lake, dataset, after, upto, block_columns(chain)))
