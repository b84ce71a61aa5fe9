"""Blocks read through delta-rs: those announced, and those published, a stretch of numbers at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from strandline.lake.checksums import register
from strandline.lake.location import Lake
from strandline.lake.reads import read_added_rows
from strandline.lake.state import get_table
from strandline.model.columns import DELETED, POSITION
from strandline.model.project import Chain, Head

from .branches import STRIDE, Block

Group = tuple[Any, ...]
_MICRO = Decimal("0.000001")
"""Weights are added up by the database and here: to as many digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTable:
    """A table of blocks at a version: the facts, or the chain itself."""

    lake: Lake
    dataset: str
    version: int
    chain: Chain
    live_only: bool
    _opened: list[QueryBuilder] = field(default_factory=list)

    def query(self, select: str, where: str, then: str = "") -> pa.Table:
        if not self._opened:
            self._opened.append(register(QueryBuilder(), "t", get_table(self.lake.table(self.dataset), self.version)))
        live = f' AND NOT "{DELETED}"' if self.live_only else ""
        return pa.table(self._opened[0].execute(f"SELECT {select} FROM t WHERE {where}{live} {then}").read_all())

    def blocks(self, group: Group, low: int, high: int) -> list[Block]:
        """One a hash, as first announced."""
        number = f'"{self.chain.number}"'
        where = f"{number} >= {low} AND {number} <= {high} AND {group_condition(self.chain, group)}"
        found = self.query(", ".join(f'"{c}"' for c in block_columns(self.chain)), where)
        return [b for g, b in read_blocks(self.chain, found) if g == group]

    def groups(self) -> list[Group]:
        if not self.chain.group_by:
            return [()]
        names = ", ".join(f'"{c}"' for c in self.chain.group_by)
        return rows_of(self.query(f"DISTINCT {names}", "true"))

    def bounds(self, group: Group) -> tuple[int | None, int | None]:
        """The lowest and the highest number."""
        number = f'"{self.chain.number}"'
        ((low, high),) = rows_of(self.query(f"min({number}) AS low, max({number}) AS high", group_condition(self.chain, group)))
        return low, high

    def count(self, group: Group, low: int) -> int:
        """Distinct hashes with numbers from `low` on."""
        where = f'"{self.chain.number}" >= {low} AND {group_condition(self.chain, group)}'
        ((found,),) = rows_of(self.query(f'count(DISTINCT "{self.chain.hash}") AS n', where))
        return int(found)

    def hashes(self, group: Group, low: int, high: int) -> dict[int, str]:
        number, hash_ = f'"{self.chain.number}"', f'"{self.chain.hash}"'
        where = f"{number} >= {low} AND {number} <= {high} AND {group_condition(self.chain, group)}"
        names = "".join(f', "{c}"' for c in self.chain.group_by)
        return {n: h for n, h, *own in rows_of(self.query(f"{number}, {hash_}{names}", where)) if tuple(own) == group}

    def summed_after(self, group: Group, number: int) -> Any:
        column = f'"{self.chain.head.column}"'
        where = f'"{self.chain.number}" > {number} AND {group_condition(self.chain, group)}'
        ((total,),) = rows_of(self.query(f"sum(CAST({column} AS DECIMAL(38, 6))) AS total", where))
        return total or Decimal(0)


def group_condition(chain: Chain, group: Group) -> str:
    """The rows of one chain; a value that is not plain text or a whole number is left to whoever reads the answer."""
    parts = []
    for column, value in zip(chain.group_by, group, strict=True):
        if value is None:
            parts.append(f'"{column}" IS NULL')
        elif isinstance(value, int) and not isinstance(value, bool):
            parts.append(f'"{column}" = {value}')
        elif isinstance(value, str):
            parts.append(f'"{column}" = ' + "'" + value.replace("'", "''") + "'")
    return " AND ".join(parts) or "true"


def block_columns(chain: Chain) -> list[str]:
    head = [chain.head.column] if chain.head.column else []
    return list(dict.fromkeys([*chain.group_by, chain.number, chain.hash, chain.parent, *head, *chain.order_by, POSITION]))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    return list(zip(*columns, strict=True)) if columns else []


def read_blocks(chain: Chain, table: pa.Table) -> list[tuple[Group, Block]]:
    """Blocks with the chain each is of, one a hash. A block without number or hash is none."""
    columns = {name: table.column(name).to_pylist() for name in block_columns(chain)}
    found: dict[tuple[Group, str], Block] = {}
    for i in range(table.num_rows):
        number, hash_ = columns[chain.number][i], columns[chain.hash][i]
        if number is None or hash_ is None:
            continue
        group = tuple(columns[c][i] for c in chain.group_by)
        parent = columns[chain.parent][i]
        block = Block(
            number=number,
            hash=str(hash_),
            parent=None if parent is None else str(parent),
            weight=_weigh(chain, number, columns[chain.head.column][i] if chain.head.column else None),
            seen=(*(_ordered(columns[c][i]) for c in chain.order_by), _ordered(columns[POSITION][i]), str(hash_)),
        )
        known = found.get((group, block.hash))
        found[group, block.hash] = block if known is None else _first(chain, known, block)
    return [(group, block) for (group, _), block in found.items()]


def _first(chain: Chain, one: Block, other: Block) -> Block:
    """Of two announcements of a block the earlier; under `last` it counts as seen when it was seen last."""
    first, later = (one, other) if one.seen <= other.seen else (other, one)
    if chain.head.kind is not Head.LAST or first.weight >= later.weight:
        return first
    return Block(number=first.number, hash=first.hash, parent=first.parent, weight=later.weight, seen=first.seen)


def _weigh(chain: Chain, number: int, value: Any) -> Any:
    match chain.head.kind:
        case Head.LONGEST:
            return number
        case Head.MOST_SUMMED:
            return Decimal(str(value)).quantize(_MICRO) if value is not None else Decimal(0)
        case _:
            return _ordered(value)


def _ordered(value: Any) -> tuple[Any, ...]:
    """Comparable whatever it is: NULL sorts first, a position by its parts."""
    if isinstance(value, Mapping):
        return (1, *(_ordered(v) for v in value.values()))
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
    _low: int = 0
    _high: int = -1
    _hashes: dict[int, str] = field(default_factory=dict)

    def hash_at(self, number: int) -> str | None:
        if not self._low <= number <= self._high:
            self._low, self._high = number - STRIDE, number + STRIDE
            self._hashes = self.own.hashes(self.group, self._low, self._high)
        return self._hashes.get(number)

    def tip(self) -> Block | None:
        number = self.own.bounds(self.group)[1]
        if number is None:
            return None
        hash_ = self.hash_at(number)
        return next((b for b in self.facts.blocks(self.group, number, number) if b.hash == hash_), None)

    def summed_after(self, number: int) -> Any:
        return self.own.summed_after(self.group, number)


def read_new(lake: Lake, chain: Chain, dataset: str, after: int, upto: int) -> list[tuple[Group, Block]]:
    """The blocks that facts added since a version announce."""
    return read_blocks(chain, read_added_rows(lake, dataset, after, upto, block_columns(chain)))
