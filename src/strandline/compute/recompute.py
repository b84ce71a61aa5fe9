"""A full recompute compared with what is published (L2).

Each kind of node defines what is expected of it: `expect` of its worker.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from strandline.lake.normal import comparable
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Expected, Work
from strandline.model.columns import CONFIG, POSITION, quote

from .keys import key_hash

_STALE, _EXPECTED, _ACTUAL = "__stale", "__expected", "__actual"
EXAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row that only one side has."""

    only_in: str
    row: dict[str, object]
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    compared: int
    differing: int
    stale: int
    kept: int = 0
    """Rows of an appending output that the recompute no longer gives."""
    examples: tuple[Difference, ...]


def compare_with_recompute(
    work: Work, expected: Expected, *, stale: bool, sample_percent: float | None
) -> Comparison:
    """Compare what is published with a full recompute, row by row.

    `stale`: some published rows are of an older configuration.
    """
    if expected.rows is None:
        return _find_received_twice(work, expected.published)
    rows, published = expected.rows, expected.published
    if sample_percent is not None:
        rows, published = (_sample(side, expected.sampled_by, sample_percent) for side in (rows, published))
    if expected.unique_key:
        return _compare_kept(work, rows, published, expected.unique_key, stale=stale)
    columns = [c for c in rows.columns if c in published.columns]
    missing = [c for c in rows.columns if c not in published.columns]
    columns += missing  # columns that the table lacks so far: their rows wait for a backfill
    for name in missing:
        published = published.withColumn(name, F.lit(None).cast(rows.schema[name].dataType))
    return _compare(work, rows, published, columns, stale=stale)


def _sample(rows: DataFrame, columns: Sequence[str], percent: float) -> DataFrame:
    return rows.where(
        F.pmod(key_hash([F.col(quote(c)) for c in columns]), F.lit(1_000_000)) < int(percent * 10_000)
    )


def _compare_kept(
    work: Work, expected: DataFrame, own: DataFrame, unique_key: Sequence[str], *, stale: bool
) -> Comparison:
    """An appending output must have every row that the recompute gives and no key twice.

    It keeps all it published (L2).
    """
    names = [quote(c) for c in unique_key]
    theirs = expected.select(*names).distinct().withColumns({_EXPECTED: F.lit(1), _ACTUAL: F.lit(0)})
    typed = [_cast(c, expected.schema[c].dataType) for c in unique_key]
    ours = own.select(*typed).withColumns({_EXPECTED: F.lit(0), _ACTUAL: F.lit(1)})
    grouped = (
        theirs.unionByName(ours)
        .groupBy(*names)
        .agg(F.sum(_EXPECTED).alias(_EXPECTED), F.sum(_ACTUAL).alias(_ACTUAL))
    )
    missing, twice = (F.col(_EXPECTED) > 0) & (F.col(_ACTUAL) == 0), F.col(_ACTUAL) > 1
    counts = {
        "compared": F.sum(F.greatest(_EXPECTED, _ACTUAL)),
        "missing": F.count_if(missing),
        "twice": F.count_if(twice),
        "kept": F.count_if((F.col(_EXPECTED) == 0) & (F.col(_ACTUAL) > 0)),
    }
    staged = stage(grouped, f"{work.staging}/differences", counts, missing | twice)
    waiting = staged.counts["missing"] if stale else 0
    rows = (
        staged.read(work.session).limit(EXAMPLES).collect()
        if staged.counts["missing"] + staged.counts["twice"]
        else []
    )
    examples = tuple(
        Difference(
            only_in="published" if r[_ACTUAL] else "recomputed",
            row={c: r[c] for c in unique_key},
            stale=stale and not r[_ACTUAL],
        )
        for r in rows
    )
    differing = staged.counts["missing"] + staged.counts["twice"] - waiting
    return Comparison(
        compared=staged.counts["compared"],
        differing=differing,
        stale=waiting,
        kept=staged.counts["kept"],
        examples=examples,
    )


def _compare(
    work: Work, expected: DataFrame, actual: DataFrame, columns: list[str], *, stale: bool
) -> Comparison:
    """Compare both sides as multisets, doubles by 12 significant digits."""
    named = [comparable(F.col(quote(c)), expected.schema[c].dataType).alias(c) for c in columns]
    theirs = expected.select(*named).withColumns(
        {_EXPECTED: F.lit(1), _ACTUAL: F.lit(0), _STALE: F.lit(False)}
    )
    older = F.col(CONFIG) != F.lit(work.config.hash) if stale and CONFIG in actual.columns else F.lit(False)
    typed = actual.select(*(_cast(c, expected.schema[c].dataType) for c in columns), older.alias(_STALE))
    compared = [comparable(F.col(quote(c)), typed.schema[c].dataType).alias(c) for c in columns]
    ours = typed.select(*compared, _STALE).withColumns({_EXPECTED: F.lit(0), _ACTUAL: F.lit(1)})
    grouped = (
        theirs.unionByName(ours)
        .groupBy(*(quote(c) for c in columns))
        .agg(F.sum(_EXPECTED).alias(_EXPECTED), F.sum(_ACTUAL).alias(_ACTUAL), F.max(_STALE).alias(_STALE))
    )
    balance = F.col(_EXPECTED) - F.col(_ACTUAL)
    counts = {
        "compared": F.sum(F.greatest(_EXPECTED, _ACTUAL)),
        "differing": F.sum(F.abs(balance)),
    }
    staged = stage(grouped, f"{work.staging}/differences", counts, balance != 0)
    if not staged.counts["differing"]:
        return Comparison(compared=staged.counts["compared"], differing=0, stale=0, examples=())
    return _explain(
        work,
        staged,
        columns,
        stale=stale,
        doubles=[c for c in columns if isinstance(expected.schema[c].dataType, DoubleType | FloatType)],
    )


def _cast(name: str, kind: DataType) -> Column:
    """A column in another type, with nested values that may be NULL, as a table's always may."""
    return F.col(quote(name)).cast(_nullable(kind)).alias(name)


def _nullable(kind: DataType) -> DataType:
    match kind:
        case ArrayType():
            return ArrayType(_nullable(kind.elementType), containsNull=True)
        case MapType():
            return MapType(kind.keyType, _nullable(kind.valueType), valueContainsNull=True)
        case StructType():
            return StructType([StructField(f.name, _nullable(f.dataType), nullable=True) for f in kind])
        case _:
            return kind


def _explain(
    work: Work, staged: Staged, columns: list[str], *, stale: bool, doubles: list[str]
) -> Comparison:
    """Separate differing rows from stale ones.

    Rows whose doubles agree to 12 digits but were rounded apart are paired.
    """
    if staged.counts["differing"] > 100_000:
        rows = staged.read(work.session).limit(EXAMPLES).collect()
        differing = staged.counts["differing"]
    else:
        rows = _unpaired(staged.read(work.session).collect(), columns, doubles)
        differing = sum(abs(r[_EXPECTED] - r[_ACTUAL]) for r in rows)
    differences = [
        Difference(
            only_in="recomputed" if r[_EXPECTED] > r[_ACTUAL] else "published",
            row={c: r[c] for c in columns},
            stale=stale and (r[_STALE] or r[_EXPECTED] > r[_ACTUAL]),
        )
        for r in rows
    ]
    waiting = sum(abs(r[_EXPECTED] - r[_ACTUAL]) for r, d in zip(rows, differences, strict=True) if d.stale)
    examples = sorted(differences, key=lambda d: (d.stale, str([d.row[c] for c in columns]), d.only_in))[
        :EXAMPLES
    ]
    return Comparison(
        compared=staged.counts["compared"],
        differing=differing - waiting,
        stale=waiting,
        examples=tuple(examples),
    )


def _unpaired(rows: list[Row], columns: list[str], doubles: list[str]) -> list[Row]:
    """Rows without an equal partner on the other side, where doubles are equal to 12 significant digits."""
    if not doubles:
        return rows
    others = [c for c in columns if c not in doubles]
    grouped: dict[tuple[str, int], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for row in rows:
        surplus = row[_EXPECTED] - row[_ACTUAL]
        grouped[repr([row[c] for c in others]), abs(surplus)][surplus > 0].append(row)
    paired: set[int] = set()
    for published, recomputed in grouped.values():
        for one, other in _pair(published, recomputed, doubles):
            paired |= {id(one), id(other)}
    return [row for row in rows if id(row) not in paired]


def _pair(left: list[Row], right: list[Row], doubles: list[str]) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows whose doubles agree, each row in one pair.

    After sorting by the first double a partner is near.
    """
    ordered = sorted(right, key=lambda row: _as_number(row[doubles[0]]))
    numbers = [_as_number(row[doubles[0]]) for row in ordered]
    for row in left:
        number = _as_number(row[doubles[0]])
        place = bisect_left(numbers, number - abs(number) * 1e-10)
        while place < len(ordered) and numbers[place] <= number + abs(number) * 1e-10:
            if all(_agree(ordered[place][c], row[c]) for c in doubles):
                yield row, ordered[place]
                del ordered[place], numbers[place]
                break
            place += 1


def _as_number(text: str | None) -> float:
    """The number of a double's text. What is not a number sorts after every number."""
    return float(text) if text is not None and "n" not in text.lower() else math.inf


def _agree(one: str | None, other: str | None) -> bool:
    """Whether two doubles, written with 12 digits, differ by at most one unit of the last."""
    if one is None or other is None or "n" in (one + other).lower():
        return one == other
    a, b = float(one), float(other)
    return abs(a - b) <= 1.5e-11 * max(abs(a), abs(b))


def _find_received_twice(work: Work, own: DataFrame) -> Comparison:
    """Check that no position was received twice."""
    grouped = own.groupBy(POSITION).agg(F.count(F.lit(1)).alias("n"))
    counts = {
        "compared": F.sum(F.when(F.col(f"{POSITION}.place") > 0, F.col("n")).otherwise(0)),
        "differing": F.sum(F.col("n") - 1),
    }
    staged = stage(grouped, f"{work.staging}/positions", counts, F.col("n") > 1)
    twice = staged.read(work.session).limit(EXAMPLES).collect() if staged.counts["differing"] else []
    examples = tuple(
        Difference(only_in="published", row={POSITION: tuple(r[POSITION]), "times": r["n"]}, stale=False)
        for r in twice
    )
    return Comparison(
        compared=staged.counts["compared"], differing=staged.counts["differing"], stale=0, examples=examples
    )
