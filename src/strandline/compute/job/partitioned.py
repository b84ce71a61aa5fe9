"""Jobs in mode `partition`: whole partitions, each replaced as one, once it is final."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from strandline.compute.compare import compared_columns, stage_differences, tag, write_whole
from strandline.compute.key_set import VALUE, KeySet, find_keys, list_keys, read_own
from strandline.compute.keys import key_hash
from strandline.compute.shape import fit_types
from strandline.lake.newest import plain_newest, read_newest
from strandline.lake.small import spark_schema
from strandline.lake.staging import Staged, stage
from strandline.lake.table import get_table
from strandline.lake.work import NEW, OLD, SIDE, Prepared, Work, Write
from strandline.model.columns import CONFIG, DELETED, KEY
from strandline.model.commits import BuiltPartition, Operation
from strandline.model.errors import WorkError
from strandline.model.node import By
from strandline.model.partitions import find_span, is_final
from strandline.model.plan import Cause, Strategy
from strandline.model.project import Job, Partitioning
from strandline.model.scope import Partitions, Scope, find_filter, find_partitions

from .affected import count_read, find_affected, restrict_inputs
from .code import compute
from .rows import check_row_key, lower_columns, require_columns
from .scopes import Scoping, make_scoping

_NAME = "__partition"
MOST_PARTITIONS = 200_000
"""At most this many in one task: their names are held in this process."""


def prepare_partitions(work: Work, job: Job, partitioning: Partitioning, full_rows: int) -> Prepared:
    """Build the partitions that changed rows fall in, and those that have become final. The others wait."""
    own = None if work.task.overwrite else work.read_own()
    scoping = make_scoping(work, job, own)
    names, changed_rows = _find_names(work, scoping, whole=own is None or work.task.strategy is Strategy.FULL)
    due = [n for n in names if n in work.partitions] if own is not None else []
    others = [n for n in names if n not in set(due)]
    tips = _find_tips(work, scoping) if others and partitioning.final_after is not None else {}
    due += [n for n in others if _is_due(work, partitioning, n, tips)]
    waiting = tuple(sorted(set(names) - set(due)))
    if not due and own is not None:
        return Prepared(
            write=None,
            rows_full=full_rows,
            live_rows=work.live_rows,
            scope=Partitions.counted([], len(waiting)),
            waiting=waiting,
        )
    keys = _keys_of(work, scoping, due)
    result, read = _compute(work, job, scoping, keys)
    scope = Partitions.counted(due, len(waiting))
    rows = result.withColumns(
        {KEY: key_hash([F.col(_NAME)]), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)}
    )
    if own is None:
        return _write_first(work, job, rows, due, waiting, full_rows, scope)
    rows = fit_types(rows.drop(_NAME), own, work)
    old = read_own(work, keys).where(~F.col(DELETED))
    sides = tag(rows, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    staged = stage_differences(
        work, sides, compared_columns(sides, backfill=work.task.cause is Cause.PERSON), bury=False
    )
    if job.row_key:
        check_row_key(job, staged.read(work.session).where(F.col(SIDE) == NEW))
    return _replace(
        work, staged, keys, waiting, rows_read=changed_rows + read(), rows_full=full_rows, scope=scope
    )


def _find_names(work: Work, scoping: Scoping, *, whole: bool) -> tuple[list[str], int]:
    """The partitions a task may have to build, and the number of changed rows they came from."""
    if whole:
        inputs = [
            scoping.select(work.read_live(i.dataset), i.relation.columns)
            for i in work.node.inputs
            if isinstance(i.relation, By)
        ]
        names = _names(work, find_keys(work, reduce(DataFrame.unionByName, inputs), held=MOST_PARTITIONS))
        return sorted({*names.values(), *work.partitions}), 0
    requested = {*find_partitions(work.task.scope), *work.waiting}
    if not _has_news(work):
        return sorted(requested), 0
    keys = find_keys(work, find_affected(work, scoping), held=MOST_PARTITIONS)
    return sorted({*_names(work, keys).values(), *requested}), keys.rows


def _has_news(work: Work) -> bool:
    """Whether there is work besides a person's list of partitions."""
    changed = [
        i.dataset for i in work.task.inputs if i.changes and work.after(i.dataset) < work.version(i.dataset)
    ]
    return find_filter(work.task.scope) is not None or any(
        work.has_changes(name) or work.invalidations(name) for name in changed
    )


def _names(work: Work, keys: KeySet) -> Mapping[int, str]:
    if keys.count > MOST_PARTITIONS:
        raise WorkError(
            f"`{work.node.name}` would have {keys.count:,} partitions at once.",
            remedy=f"Make them larger: at most {MOST_PARTITIONS:,} are built in one task.",
            slug="too-many-partitions",
        )
    if len(keys.values) < keys.count:
        raise _collide(work)
    return {key: str(name) for key, name in keys.values.items()}


def _collide(work: Work) -> WorkError:
    return WorkError(
        f"Two partitions of `{work.node.name}` have the same hash.",
        remedy="Give the partitions another size: that changes their names, and with them the hashes.",
        slug="partitions-collide",
    )


def _find_tips(work: Work, scoping: Scoping) -> dict[str, object]:
    """By group: the newest value of the partition's column among the inputs."""
    tips: dict[str, object] = {}
    for input_ in work.node.inputs:
        if isinstance(input_.relation, By):
            for group, newest in _read_newest(work, scoping, input_.dataset, input_.relation.columns).items():
                if group not in tips or newest > tips[group]:  # type: ignore[operator]
                    tips[group] = newest
    return tips


def _read_newest(work: Work, scoping: Scoping, dataset: str, columns: Sequence[str]) -> dict[str, object]:
    """Read through delta-rs where it writes groups as Spark does: text and whole numbers."""
    version = work.version(dataset)
    kinds = {f.name: f.dataType for f in spark_schema(get_table(work.lake.table(dataset), version))}
    if all(isinstance(kinds[c], StringType | IntegralType) for c in columns[:-1]):
        return read_newest(work.lake, dataset, version, columns[-1], columns[:-1])
    newest = scoping.newest(work.read_live(dataset), columns).toArrow()
    groups, values = newest.column("group").to_pylist(), plain_newest(newest.column("newest"))
    return {group: newest for group, newest in zip(groups, values, strict=True) if newest is not None}


def _is_due(work: Work, partitioning: Partitioning, name: str, tips: Mapping[str, object]) -> bool:
    span = find_span(partitioning, work.project.calendar, name)
    # A name that is not one of ours belongs to a time beyond the calendar: nothing newer can come.
    return span is None or is_final(partitioning, span, tips)  # type: ignore[arg-type]


def _keys_of(work: Work, scoping: Scoping, names: Iterable[str]) -> KeySet:
    listed = sorted(names)
    names_by_hash = {int(r[KEY]): r[VALUE] for r in scoping.select_names(work.session, listed).collect()}
    if len(names_by_hash) < len(listed):
        raise _collide(work)
    keys = list_keys(work, list(names_by_hash), 0)
    return KeySet(count=keys.count, rows=0, listed=keys.listed, staged=keys.staged, values=names_by_hash)


def _compute(work: Work, job: Job, scoping: Scoping, keys: KeySet) -> tuple[DataFrame, "_Reading"]:
    """The rows of the partitions, each with its partition's name.

    Where the result lacks the partition column, each is computed separately.
    """
    inputs, counters = restrict_inputs(work, scoping, keys)
    result = lower_columns(job, compute(work, job, inputs))
    require_columns(job, result, job.row_key)
    if set(job.key) <= set(result.columns):
        reading = _Reading(result, counters)
        named = result.withColumn(_NAME, scoping.name(result, job.key))
        return keys.restrict(named, key_hash([F.col(_NAME)])), reading
    names = [str(name) for name in keys.values.values()]
    rows = result.withColumn(_NAME, F.lit("")).limit(0)
    at_once = min(work.project.settings.thresholds.partitions_at_once, len(names) or 1)
    for start in range(0, len(names), at_once):
        parts = [_compute_one(work, job, scoping, name) for name in names[start : start + at_once]]
        staged = stage(
            reduce(DataFrame.unionByName, parts),
            f"{work.staging}/partitions_{start}",
            {"rows": F.count(F.lit(1))},
        )
        rows = rows.unionByName(staged.read(work.session))
    return rows, _Reading(result, {})


def _compute_one(work: Work, job: Job, scoping: Scoping, name: str) -> DataFrame:
    inputs, _ = restrict_inputs(work, scoping, _keys_of(work, scoping, [name]), f" {name}")
    return lower_columns(job, compute(work, job, inputs)).withColumn(_NAME, F.lit(name))


class _Reading:
    """The number of rows read, available once they have been read."""

    def __init__(self, result: DataFrame, counters: Mapping[str, Observation]) -> None:
        self._result, self._counters = result, counters

    def __call__(self) -> int:
        return count_read(self._result, self._counters)


def _write_first(
    work: Work,
    job: Job,
    rows: DataFrame,
    due: list[str],
    waiting: tuple[str, ...],
    full_rows: int,
    scope: Scope,
) -> Prepared:
    prepared = write_whole(
        work, rows.drop(_NAME), rows_full=full_rows, check=lambda built: check_row_key(job, built)
    )
    assert prepared.write is not None
    assert prepared.write.rows is not None
    counts = {
        r[KEY]: r["n"] for r in prepared.write.rows.groupBy(KEY).agg(F.count(F.lit(1)).alias("n")).collect()
    }
    hashes = {name: key for key, name in _keys_of(work, make_scoping(work, job, None), due).values.items()}
    built = tuple(BuiltPartition(partition_key=n, rows=counts.get(hashes[n], 0)) for n in due)
    return replace(prepared, partitions=built, waiting=waiting, scope=scope)


def _replace(
    work: Work,
    staged: Staged,
    keys: KeySet,
    waiting: tuple[str, ...],
    *,
    rows_read: int,
    rows_full: int,
    scope: Scope,
) -> Prepared:
    """The write of the partitions that differ. The others stay as they are."""
    differing = _count_sides(staged) if staged.counts["new_rows"] or staged.counts["old_live"] else {}
    built = tuple(
        BuiltPartition(partition_key=str(keys.values[key]), rows=new) for key, new in differing.items()
    )
    whole = work.task.strategy is Strategy.FULL
    same = sorted(str(n) for key, n in keys.values.items() if key not in differing)
    # Built and found unchanged: these are new, or now known to be what this configuration gives.
    unchanged = [
        n
        for n in same
        if n not in work.partitions or ((whole or work.task.cause is Cause.PERSON) and work.stale)
    ]
    built += tuple(
        BuiltPartition(partition_key=n, rows=work.partitions[n].row_count if n in work.partitions else 0)
        for n in unchanged
    )
    rows = staged.read(work.session).where(F.col(SIDE) == NEW).drop(SIDE)
    if differing:
        write: Write | None = Write(
            operation=Operation.REPLACE_PARTITIONS, rows=rows, replaced=tuple(differing)
        )
    else:
        write = (
            Write(operation=Operation.COUNTS, rows=rows.limit(0)) if built or (whole and work.stale) else None
        )
    return Prepared(
        write=write,
        rows_read=rows_read,
        rows_written=staged.counts["new_live"],
        rows_full=rows_full,
        live_rows=work.live_rows + staged.counts["new_live"] - staged.counts["old_live"],
        scope=scope,
        whole=whole,
        changes=staged if differing else None,
        partitions=built,
        waiting=waiting,
    )


def _count_sides(staged: Staged) -> dict[int, int]:
    """The number of new rows of each partition that differs, by its hash."""
    table = staged.fetch([KEY, SIDE])
    counts: dict[int, int] = {}
    for key, side in zip(table.column(KEY).to_pylist(), table.column(SIDE).to_pylist(), strict=True):
        counts[key] = counts.get(key, 0) + (1 if side == NEW else 0)
    return counts
