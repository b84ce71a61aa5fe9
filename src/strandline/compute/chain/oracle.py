"""The canonical blocks of a chain, found the plain way: all announced blocks, with links followed upwards.

It shares nothing with the walk that follows a change (`branches`), and no lookup: Spark reads the facts.
Memory grows with the number of announced blocks, which `verify` can afford and a run cannot.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType

from strandline.compute.keys import row_hash, user_columns
from strandline.lake.location import write_parquet
from strandline.lake.work import Work
from strandline.model.columns import POSITION, quote
from strandline.model.project import Chain, Head

_Announcement = tuple[int, Any, Any, Any, tuple[Any, ...]]
"""Number, hash, parent, weight, and the order in which it was seen."""


def expect_chain(work: Work, chain: Chain) -> DataFrame:
    """The canonical blocks, each as it was first announced."""
    facts = work.read_all(work.node.inputs[0].dataset)
    declared = [c for c in user_columns(facts.columns) if not c.startswith("__")]
    by_group: dict[tuple[Any, ...], list[_Announcement]] = defaultdict(list)
    for group, announcement in _announcements(chain, facts):
        by_group[group].append(announcement)
    canonical = [
        (group, *place) for group, listed in by_group.items() for place in find_canonical(chain, listed)
    ]
    names = (*chain.key, chain.hash)
    schema = StructType([StructField(f"__{c}", facts.schema[c].dataType) for c in names])
    rows = [(*group, number, hash_) for group, number, hash_ in canonical]
    columns = {
        f.name: pa.array([row[i] for row in rows], to_arrow_type(f.dataType)) for i, f in enumerate(schema)
    }
    path = f"{work.staging}/canonical.parquet"
    write_parquet(pa.table(columns), path)
    staged = work.session.read.schema(schema).parquet(path)
    same = [F.col(quote(c)).eqNullSafe(F.col(quote(f"__{c}"))) for c in names]
    seen = F.struct(
        *(F.col(POSITION if c == POSITION else quote(c)).alias(f"o{i}") for i, c in enumerate(chain.order_by))
    )
    order = F.struct(seen, F.col(POSITION), row_hash(declared))
    row = F.min_by(F.struct(*map(quote, declared)), order).alias("__row")
    first = facts.join(staged, same, "left_semi").groupBy(*map(quote, names)).agg(row)
    return first.select(*(F.col("__row")[c].alias(c) for c in declared))


def find_canonical(chain: Chain, announcements: Iterable[_Announcement]) -> list[tuple[int, Any]]:
    """Number and hash of each block on the branch of the best head that is connected to the anchor."""
    blocks = _first_announced(chain, announcements)
    if not blocks:
        return []
    anchor = chain.anchor if chain.anchor is not None else min(number for number, _ in blocks)
    children: dict[tuple[int, Any], list[tuple[int, Any]]] = defaultdict(list)
    for (number, hash_), (parent, _, _) in blocks.items():
        children[number - 1, parent].append((number, hash_))
    total: dict[tuple[int, Any], Any] = {}
    reached = [place for place in blocks if place[0] == anchor]
    for place in reached:
        total[place] = blocks[place][1]
    while reached:
        place = reached.pop()
        for child in children[place]:
            total[child] = total[place] + blocks[child][1] if chain.head.summed else blocks[child][1]
            reached.append(child)
    if not total:
        return []
    heaviest = max(total.values())
    head = min(
        (place for place, weight in total.items() if weight == heaviest), key=lambda place: blocks[place][2]
    )
    branch = [head]
    while branch[-1][0] > anchor:
        number, hash_ = branch[-1]
        branch.append((number - 1, blocks[number, hash_][0]))
    return branch


def _first_announced(
    chain: Chain, announcements: Iterable[_Announcement]
) -> dict[tuple[int, Any], tuple[Any, Any, tuple[Any, ...]]]:
    """Parent, weight and order of the first announcement, by number and hash.

    Under `last` the weight is that of the heaviest announcement.
    """
    blocks: dict[tuple[int, Any], tuple[Any, Any, tuple[Any, ...]]] = {}
    for number, hash_, parent, weight, seen in announcements:
        known = blocks.get((number, hash_))
        if known is None:
            blocks[number, hash_] = (parent, weight, seen)
            continue
        first = known if known[2] <= seen else (parent, weight, seen)
        heavier = max(known[1], weight) if chain.head.kind is Head.LAST else first[1]
        blocks[number, hash_] = (first[0], heavier, first[2])
    return blocks


def _announcements(chain: Chain, facts: DataFrame) -> Iterable[tuple[tuple[Any, ...], _Announcement]]:
    head = [chain.head.column] if chain.head.column else []
    names = list(
        dict.fromkeys(
            [*chain.group_by, chain.number, chain.hash, chain.parent, *head, *chain.order_by, POSITION]
        )
    )
    table = facts.select(*map(quote, names)).toArrow()
    columns = {}
    for name in names:
        column = table.column(name)
        columns[name] = (
            column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        ).to_pylist()
    for i in range(table.num_rows):
        number, hash_ = columns[chain.number][i], columns[chain.hash][i]
        if number is None or hash_ is None:
            continue
        weight: Any = int(number)
        if chain.head.summed:
            weight = Fraction(columns[chain.head.column][i] or 0)
        elif chain.head.column:
            weight = _sortable(columns[chain.head.column][i])
        seen = tuple(_sortable(columns[c][i]) for c in (*chain.order_by, POSITION))
        group = tuple(columns[c][i] for c in chain.group_by)
        yield group, (int(number), hash_, columns[chain.parent][i], weight, (*seen, hash_))


def _sortable(value: Any) -> tuple[Any, ...]:
    """NULL first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *(_sortable(v) for v in value.values()))
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)
