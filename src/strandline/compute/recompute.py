"""The full recompute of any node over pinned inputs, and its comparison with what is published: the oracle (L2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from strandline.compute.chain.oracle import expect_chain
from strandline.compute.facts.decode import ACCEPTED, DERIVED, OUTCOME, QUARANTINED, REASON, SLUG
from strandline.compute.facts.export_oracle import expect_live, find_live, mark_live
from strandline.compute.facts.worker import decode_received
from strandline.compute.snapshot.worker import is_complete
from strandline.lake.normal import comparable
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import CONFIG, DELETED, LAST_PLACE, POSITION, quote
from strandline.model.node import Quarantine, Snapshot
from strandline.model.project import Chain, FactDataset, FileSource, Job

from .keys import key_hash, user_columns
from .oracle import expect_job, expect_snapshot

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
    """Rows of an output that appends which the recompute no longer gives."""
    examples: tuple[Difference, ...]


def compare_with_recompute(work: Work, *, stale: bool, sample_percent: float | None) -> Comparison:
    """Recompute a node in full and compare row by row. `stale`: some of its rows are of an older configuration."""
    match work.node.definition:
        case FileSource():
            return _check_source(work)
        case Job(unique_key=unique_key) as job if unique_key:
            return _compare_published(work, job, stale=stale, sample_percent=sample_percent)
        case definition:
            expected, actual, sampled_by = _sides(work, definition)
    columns = [c for c in expected.columns if c in actual.columns]
    missing = [c for c in expected.columns if c not in actual.columns]
    columns += missing  # a column that the table does not have yet: its rows wait for a backfill
    for name in missing:
        actual = actual.withColumn(name, F.lit(None).cast(expected.schema[name].dataType))
    if sample_percent is not None:
        expected, actual = _sample(expected, sampled_by, sample_percent), _sample(actual, sampled_by, sample_percent)
    return _compare(work, expected, actual, columns, stale=stale)


def _sides(work: Work, definition: FactDataset | Quarantine | Snapshot | Chain | Job) -> tuple[DataFrame, DataFrame, Sequence[str]]:
    """What a recompute gives, what is there, and the columns a sample is drawn by."""
    own = work.read_own()
    assert own is not None
    match definition:
        case FactDataset() as dataset:
            received = work.read_all(dataset.source)
            rows = decode_received(work, dataset, received, own=None).where(F.col(OUTCOME).isin(ACCEPTED, DERIVED))
            columns = [c for c in user_columns(rows.columns) if not c.startswith("__")]
            kept = [*columns, *([DELETED] if dataset.record_set else []), POSITION]
            # Deleting facts derived from exports depend on what had arrived when; which facts are live does not, and is compared.
            real = (F.col(f"{POSITION}.place") > 0) & (F.col(f"{POSITION}.place") < LAST_PLACE)
            rows, facts = rows.where(real).select(*map(quote, kept)), own.where(real)
            if is_complete(work, dataset):
                rows = mark_live(rows, expect_live(received, dataset, work.project.calendar), dataset)
                facts = mark_live(facts, find_live(own, dataset), dataset)
            return rows, facts, [POSITION]
        case Quarantine(facts=dataset):
            rows = decode_received(work, dataset, work.read_all(dataset.source), own=None).where(F.col(OUTCOME) == QUARANTINED)
            rows = rows.select(F.col(SLUG).alias("slug"), F.col(REASON).alias("reason"), F.col("_payload").alias("payload"), POSITION)
            return rows, own, [POSITION]
        case Snapshot(facts=dataset):
            assert dataset.record_set is not None
            rows = expect_snapshot(work.read_all(work.node.inputs[0].dataset), dataset, complete=is_complete(work, dataset))
            return rows, own.where(~F.col(DELETED)), dataset.record_set.key
        case Chain() as chain:
            return expect_chain(work, chain), own.where(~F.col(DELETED)), chain.key
        case Job() as job:
            rows = expect_job(work, job)
            by_key = job.key and set(job.key) <= set(rows.columns)
            return rows, own.where(~F.col(DELETED)), job.key if by_key else rows.columns


def _sample(rows: DataFrame, columns: Sequence[str], percent: float) -> DataFrame:
    return rows.where(F.pmod(key_hash([F.col(quote(c)) for c in columns]), F.lit(1_000_000)) < int(percent * 10_000))


def _compare_published(work: Work, job: Job, *, stale: bool, sample_percent: float | None) -> Comparison:
    """An output that appends misses nothing that the recompute gives, has no key twice, and keeps what was published (L2)."""
    own = work.read_own()
    assert own is not None
    expected = expect_job(work, job)
    names = [quote(c) for c in job.unique_key]
    if sample_percent is not None:
        expected, own = _sample(expected, job.unique_key, sample_percent), _sample(own, job.unique_key, sample_percent)
    theirs = expected.select(*names).distinct().withColumns({_EXPECTED: F.lit(1), _ACTUAL: F.lit(0)})
    typed = [_cast(c, expected.schema[c].dataType) for c in job.unique_key]
    ours = own.select(*typed).withColumns({_EXPECTED: F.lit(0), _ACTUAL: F.lit(1)})
    grouped = theirs.unionByName(ours).groupBy(*names).agg(F.sum(_EXPECTED).alias(_EXPECTED), F.sum(_ACTUAL).alias(_ACTUAL))
    missing, twice = (F.col(_EXPECTED) > 0) & (F.col(_ACTUAL) == 0), F.col(_ACTUAL) > 1
    counts = {
        "compared": F.sum(F.greatest(_EXPECTED, _ACTUAL)),
        "missing": F.count_if(missing),
        "twice": F.count_if(twice),
        "kept": F.count_if((F.col(_EXPECTED) == 0) & (F.col(_ACTUAL) > 0)),
    }
    staged = stage(grouped, f"{work.staging}/differences", counts, missing | twice)
    waiting = staged.counts["missing"] if stale else 0
    rows = staged.read(work.session).limit(EXAMPLES).collect() if staged.counts["missing"] + staged.counts["twice"] else []
    examples = tuple(
        Difference(
            only_in="published" if r[_ACTUAL] else "recomputed", row={c: r[c] for c in job.unique_key}, stale=stale and not r[_ACTUAL]
        )
        for r in rows
    )
    differing = staged.counts["missing"] + staged.counts["twice"] - waiting
    return Comparison(compared=staged.counts["compared"], differing=differing, stale=waiting, kept=staged.counts["kept"], examples=examples)


def _compare(work: Work, expected: DataFrame, actual: DataFrame, columns: list[str], *, stale: bool) -> Comparison:
    """Both sides as multisets; doubles by 12 significant digits."""
    named = [comparable(F.col(quote(c)), expected.schema[c].dataType).alias(c) for c in columns]
    theirs = expected.select(*named).withColumns({_EXPECTED: F.lit(1), _ACTUAL: F.lit(0), _STALE: F.lit(False)})
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
        work, staged, columns, stale=stale, doubles=[c for c in columns if isinstance(expected.schema[c].dataType, DoubleType | FloatType)]
    )


def _cast(name: str, kind: DataType) -> Column:
    """A column in another type, whose nested values may be NULL: a table's always may, a computation's need not."""
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


def _explain(work: Work, staged: Staged, columns: list[str], *, stale: bool, doubles: list[str]) -> Comparison:
    """Tell differing rows from stale ones, and pair rows whose doubles agree to 12 digits but were rounded apart."""
    if staged.counts["differing"] > 100_000:
        rows = staged.read(work.session).limit(EXAMPLES).collect()
        differing = staged.counts["differing"]
    else:
        rows = _unpaired(staged.read(work.session).collect(), columns, doubles)
        differing = sum(abs(r[_EXPECTED] - r[_ACTUAL]) for r in rows)
    found = [
        Difference(
            only_in="recomputed" if r[_EXPECTED] > r[_ACTUAL] else "published",
            row={c: r[c] for c in columns},
            stale=stale and (r[_STALE] or r[_EXPECTED] > r[_ACTUAL]),
        )
        for r in rows
    ]
    waiting = sum(abs(r[_EXPECTED] - r[_ACTUAL]) for r, d in zip(rows, found, strict=True) if d.stale)
    examples = sorted(found, key=lambda d: (d.stale, str([d.row[c] for c in columns]), d.only_in))[:EXAMPLES]
    return Comparison(compared=staged.counts["compared"], differing=differing - waiting, stale=waiting, examples=tuple(examples))


def _unpaired(rows: list[Row], columns: list[str], doubles: list[str]) -> list[Row]:
    """Rows without a partner on the other side that agrees in everything, doubles to 12 significant digits."""
    if not doubles:
        return rows
    others = [c for c in columns if c not in doubles]
    left = list(rows)
    for row in rows:
        partner = next(
            (
                o
                for o in left
                if o is not row
                and row in left
                and (o[_EXPECTED] - o[_ACTUAL]) == -(row[_EXPECTED] - row[_ACTUAL])
                and all(o[c] == row[c] for c in others)
                and all(_agree(o[c], row[c]) for c in doubles)
            ),
            None,
        )
        if partner is not None:
            left.remove(row)
            left.remove(partner)
    return left


def _agree(one: str | None, other: str | None) -> bool:
    """Whether two doubles, written with 12 digits, differ by one unit of the last at most."""
    if one is None or other is None or "n" in (one + other).lower():
        return one == other
    a, b = float(one), float(other)
    return abs(a - b) <= 1.5e-11 * max(abs(a), abs(b))


def _check_source(work: Work) -> Comparison:
    """No position was received twice. The row that stands for an export without rows is not one of those received."""
    own = work.read_own()
    assert own is not None
    grouped = own.groupBy(POSITION).agg(F.count(F.lit(1)).alias("n"))
    counts = {"compared": F.sum(F.when(F.col(f"{POSITION}.place") > 0, F.col("n")).otherwise(0)), "differing": F.sum(F.col("n") - 1)}
    staged = stage(grouped, f"{work.staging}/positions", counts, F.col("n") > 1)
    twice = staged.read(work.session).limit(EXAMPLES).collect() if staged.counts["differing"] else []
    examples = tuple(Difference(only_in="published", row={POSITION: tuple(r[POSITION]), "times": r["n"]}, stale=False) for r in twice)
    return Comparison(compared=staged.counts["compared"], differing=staged.counts["differing"], stale=0, examples=examples)
