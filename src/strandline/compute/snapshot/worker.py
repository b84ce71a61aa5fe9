"""Snapshots: the latest row per key (L3), maintained from the keys of an increment alone."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.compare import compared_columns, replace_differences, stage_differences, write_whole
from strandline.compute.key_set import find_added_keys, read_own
from strandline.compute.keys import rank, row_hash, user_columns
from strandline.compute.shape import fit_types
from strandline.lake.log import count_added
from strandline.lake.work import NEW, OLD, SIDE, Expected, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY, POSITION, quote
from strandline.model.errors import GuardedError
from strandline.model.plan import Cause, Strategy
from strandline.model.project import Children, FactDataset, RecordSet, Snapshot
from strandline.model.scope import Keys

from .oracle import expect_snapshot

_WINS = "__wins"


def prepare(work: Work) -> Prepared:
    """Bring a snapshot up to date with its facts."""
    facts = _facts_of(work)
    own = None if work.task.overwrite else work.read_own()
    name = work.node.inputs[0].dataset
    rows_full = work.input_rows.get(name, 0)
    if own is None:
        folded = fold(work.read_all(name), facts)
        return write_whole(work, folded.withColumn(CONFIG, F.lit(work.config.hash)), rows_full=rows_full)
    if work.task.strategy is Strategy.FULL:
        incoming, current, read = fit_types(work.read_all(name), own, work), own, rows_full
    else:
        read = count_added(work.lake.table(name), work.after(name), work.version(name))
        incoming, current = _read_scope(work, facts, name)
    return _merge(work, facts, incoming, current, rows_read=read, rows_full=rows_full)


def expect(work: Work) -> Expected:
    facts, own = _facts_of(work), work.read_own()
    assert facts.record_set is not None
    assert own is not None
    rows = expect_snapshot(work.read_all(work.node.inputs[0].dataset), facts)
    return Expected(rows=rows, published=own.where(~F.col(DELETED)), sampled_by=facts.record_set.key)


def _read_scope(work: Work, facts: FactDataset, name: str) -> tuple[DataFrame, DataFrame]:
    """The increment and the current rows of its keys.

    If a column takes its latest non-NULL value, all facts of the keys are read instead of the increment.
    """
    assert facts.record_set is not None
    keys = find_added_keys(work, name)
    incoming = (
        keys.restrict(work.read_all(name), F.col(KEY))
        if facts.record_set.latest_non_null
        else work.read_added(name)
    )
    return incoming, read_own(work, keys)


def _merge(
    work: Work, facts: FactDataset, incoming: DataFrame, current: DataFrame, *, rows_read: int, rows_full: int
) -> Prepared:
    record_set = facts.record_set
    assert record_set is not None
    full = work.task.strategy is Strategy.FULL
    recompute = bool(record_set.latest_non_null) or full
    both = incoming.drop(CONFIG).withColumn(SIDE, F.lit(NEW)).withColumn(CONFIG, F.lit(work.config.hash))
    both = both.unionByName(current.withColumn(SIDE, F.lit(OLD)), allowMissingColumns=True).repartition(
        KEY
    )  # computed once for everything below
    sides = _choose(both, facts, old_counts=not recompute)
    live_new = F.max(((F.col(SIDE) == NEW) & ~F.col(DELETED)).cast("int")).over(
        Window.partitionBy(KEY, *(quote(c) for c in record_set.key))
    )
    sides = sides.withColumn("__stays", live_new == 1)
    leaves = (F.col(SIDE) == OLD) & ~F.col(DELETED) & ~F.col("__stays")
    compared = compared_columns(sides, _ranks(facts), backfill=work.task.cause is Cause.PERSON)
    staged = stage_differences(work, sides, compared, bury=full, leaves=leaves)
    _guard(work, facts, staged.counts["leaving"], emptied=staged.counts["emptied"] > 0)
    return replace_differences(
        work,
        staged,
        rows_read=rows_read,
        rows_full=rows_full,
        scope=Keys(count=staged.counts["new_rows"]),
        whole=full,
    )


def fold(rows: DataFrame, facts: FactDataset) -> DataFrame:
    """All facts of some keys -> the row of each key. This is the full recompute of a snapshot.

    Deleted records are `_deleted` rows.
    """
    chosen = _choose(rows.drop(CONFIG).withColumn(SIDE, F.lit(NEW)), facts, old_counts=True)
    return chosen.drop(SIDE)


def _choose(rows: DataFrame, facts: FactDataset, *, old_counts: bool) -> DataFrame:
    """From facts (side new) and current rows (side old): the winners as new rows, beside the old rows.

    `old_counts`: a current row stands for all earlier facts of its key, so it takes part in the choice.
    """
    record_set = facts.record_set
    assert record_set is not None
    declared = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    order_by = _ranks(facts)
    takes_part = F.lit(True) if old_counts else F.col(SIDE) == NEW
    if record_set.children is Children.REPLACE:
        wins = _winning_message(rows, record_set, declared, takes_part)
    else:
        wins = rows.withColumn(_WINS, _is_best(record_set.key, rank(order_by, declared), takes_part))
    if record_set.latest_non_null:
        wins = _fill_latest(wins, record_set, rank(order_by, declared), takes_part)
    roles = F.array_compact(F.array(F.when(F.col(_WINS), F.lit(NEW)), F.when(F.col(SIDE) == OLD, F.lit(OLD))))
    return wins.withColumn("__roles", roles).withColumn(SIDE, F.explode("__roles")).drop("__roles", _WINS)


def _ranks(facts: FactDataset) -> tuple[str, ...]:
    """What ranks facts. Of two exports of one rank the later one is right, also about what it lacks."""
    assert facts.record_set is not None
    order_by = facts.record_set.order_by
    return (*order_by, POSITION) if facts.complete and POSITION not in order_by else order_by


def _is_best(key: Sequence[str], ranked: Column, takes_part: Column) -> Column:
    by_rank = Window.partitionBy(KEY, *(quote(c) for c in key)).orderBy(takes_part.desc(), ranked.desc())
    return takes_part & (F.row_number().over(by_rank) == 1)


def _winning_message(
    rows: DataFrame, record_set: RecordSet, declared: Sequence[str], takes_part: Column
) -> DataFrame:
    """`children: replace`: the newest message about a parent is the whole truth about its children.

    Messages are ranked by `order_by`, then by a hash over parent and list, then by position. The list's hash
    is the sum over its elements, so that it is the same for the facts of a message and for the snapshot's
    rows that came from it.
    """
    parent = [KEY, *(quote(c) for c in record_set.parent_key)]
    ordered = [F.col(quote(c)) for c in record_set.order_by]
    marker = F.col(DELETED) & _all_null(record_set)
    elements = rows.withColumn(
        "__h", F.when(marker, F.lit(0)).otherwise(F.pmod(row_hash(declared), F.lit(1 << 45)))
    )
    once = Window.partitionBy(*parent, SIDE, POSITION, *ordered, *(quote(c) for c in record_set.key)).orderBy(
        F.col("__h").desc()
    )
    elements = elements.withColumn("__nth", F.row_number().over(once)).where(F.col("__nth") == 1)
    message = Window.partitionBy(*parent, SIDE, POSITION, *ordered)
    # A sum of bigints would overflow from some 260,000 elements on.
    elements = elements.withColumn("__list", F.sum(F.col("__h").cast("decimal(20,0)")).over(message))
    best = Window.partitionBy(*parent).orderBy(
        takes_part.desc(), F.struct(*ordered, "__list", POSITION).desc()
    )
    side_first = Window.partitionBy(*parent).orderBy(
        takes_part.desc(), F.struct(*ordered, "__list", POSITION).desc(), F.col(SIDE)
    )
    elements = elements.withColumn("__rank", F.dense_rank().over(best)).withColumn(
        "__side0", F.first(SIDE).over(side_first)
    )
    # The same message may be on both sides (a current row is its fact): the rows of one side are enough.
    wins = takes_part & (F.col("__rank") == 1) & (F.col(SIDE) == F.col("__side0"))
    return elements.withColumn(_WINS, wins).drop("__h", "__nth", "__list", "__rank", "__side0")


def _all_null(record_set: RecordSet) -> Column:
    children = [c for c in record_set.key if c not in record_set.parent_key]
    condition = F.lit(True)
    for column in children:
        condition = condition & F.col(quote(column)).isNull()
    return condition


def _fill_latest(rows: DataFrame, record_set: RecordSet, ranked: Column, takes_part: Column) -> DataFrame:
    """Each named column takes its newest non-NULL value among facts after the key's last deleting fact."""
    of_key = Window.partitionBy(KEY, *(quote(c) for c in record_set.key))
    rows = rows.withColumn("__rank", F.when(takes_part, ranked))
    rows = rows.withColumn("__deleted_at", F.max(F.when(F.col(DELETED), F.col("__rank"))).over(of_key))
    counts = F.col("__deleted_at").isNull() | (F.col("__rank") > F.col("__deleted_at"))
    for name in record_set.latest_non_null:
        column = F.col(quote(name))
        newest = F.max(
            F.when(
                takes_part & counts & column.isNotNull(),
                F.struct(F.col("__rank").alias("r"), column.alias("v")),
            )
        ).over(of_key)
        rows = rows.withColumn(name, F.when(F.col(_WINS) & ~F.col(DELETED), newest["v"]).otherwise(column))
    return rows.drop("__rank", "__deleted_at")


def _guard(work: Work, facts: FactDataset, leaving: int, *, emptied: bool) -> None:
    """Stop if too many records would leave, or an export had no rows at all. Sources fail by sending less."""
    guard, before = facts.guard, work.live_rows
    within = leaving < guard.at_least or leaving * 100 <= before * guard.max_deleted_percent
    if work.accept_guard or leaving == 0 or (within and not emptied):
        return
    raise GuardedError(
        f"{leaving} of {before} live records of `{work.node.name}` would leave, more than"
        f" {guard.max_deleted_percent:g} %.",
        remedy=f"If that is right, run again with --accept-guard {work.node.name}."
        " Facts are kept; readers see the last published state.",
        slug="guarded",
    )


def _facts_of(work: Work) -> FactDataset:
    assert isinstance(work.node.definition, Snapshot)
    return work.node.definition.facts
