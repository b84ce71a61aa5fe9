"""Entities: the variables of the entities that a change, the clock or a person touches."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.key_set import KeySet, read_own
from strandline.compute.keys import typed_key
from strandline.compute.shape import fit_types
from strandline.lake.staging import find_counts
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work, Write
from strandline.model.columns import CONFIG, DELETED, KEY, STATE, quote
from strandline.model.commits import Operation
from strandline.model.entity import Entity, Use
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .bands import pruned
from .carrying import (
    as_published,
    carry_on,
    carry_over,
    columns_of,
    declared,
    find_retyped,
    read_declared,
    with_kept,
    without_keys,
)
from .ids import Types, are_named, entity_of, find_types, id_names, key_of, part_of, rename_ids
from .naming import added_namers, explode_named, find_named, make_state, name_again, name_everybody, unite
from .oracle import expect_entity
from .owning import own_rows
from .selecting import aggregate, at_time, with_conditions, with_defaults, with_expressions
from .touched import Touched, find_touched

WITHOUT_ENTITY = "without_entity"
"""The count of rows that name no entity."""


def prepare(work: Work) -> Prepared:
    """Compute the entities of the task and compare them with what is published."""
    entity, columns = entity_of(work.node), columns_of(work)
    provide_calendar(work.session, work.project.calendar)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    own = None if work.task.overwrite else read_declared(work)
    computed = part_of(entity, columns.computed, columns.rows)
    types = find_types(work, computed, own)
    if own is None or work.task.strategy is Strategy.FULL:
        return _compute_everybody(work, computed, types, own, full_rows)
    followed = part_of(entity, columns.followed, columns.rows - columns.named)
    touched = find_touched(work, followed, types, own)
    if columns.is_whole:
        return _configure(work, computed, followed, types, own, touched, full_rows)
    return _recompute(work, followed, types, own, touched, full_rows)


def expect(work: Work) -> Expected:
    own = work.read_own()
    assert own is not None
    columns = columns_of(work)
    entity = part_of(entity_of(work.node), columns.followed, columns.rows)
    provide_calendar(work.session, work.project.calendar)
    rows = expect_entity(work, entity, find_types(work, entity, own))
    return Expected(rows=rows, published=own.where(~F.col(DELETED)), sampled_by=entity.id)


def _compute_everybody(
    work: Work, entity: Entity, types: Types, own: DataFrame | None, full_rows: int
) -> Prepared:
    everybody = name_everybody(work, entity, types)
    counting = _Counting(work)
    rows = _finish(work, entity, _compute_uses(work, entity, types, everybody, entity.uses, None, counting))
    if own is None:
        return _counted(write_whole(work, rows, rows_full=full_rows), counting)
    rows = with_kept(rows, own, entity, columns_of(work).kept)
    return _counted(_replace_all(work, rows, own, lambda: full_rows, full_rows), counting)


def _replace_all(
    work: Work, rows: DataFrame, own: DataFrame, count_read: Callable[[], int], full_rows: int
) -> Prepared:
    """The write that makes all published rows equal to these.

    The table is replaced if it loses a column or gets another type. Nothing else can change them.
    """
    columns, published = columns_of(work), own.where(~F.col(DELETED))
    retyped = find_retyped(rows, own)
    if columns.dropped or (retyped and (work.task.reshapes or retyped <= columns.filled)):
        prepared = write_whole(work, rows, rows_full=full_rows)
        return replace(prepared, rows_read=count_read())
    rows = fit_types(rows, own, work)
    sides = tag(rows, NEW).unionByName(tag(published, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(sides), bury=True)
    return replace_differences(
        work, staged, rows_read=count_read(), rows_full=full_rows, scope=EVERYTHING, whole=True
    )


def _configure(
    work: Work,
    computed: Entity,
    followed: Entity,
    types: Types,
    own: DataFrame,
    touched: Touched | None,
    full_rows: int,
) -> Prepared:
    """Fill columns for every entity, from their own inputs alone, and drop others.

    `followed` has the columns that are as declared. They are computed again for touched entities only.
    """
    columns, counting = columns_of(work), _Counting(work)
    rest = own.where(~F.col(DELETED))
    base = as_published(rest, followed)
    if touched is not None and touched.keys.count:
        published = declared(work, read_own(work, touched.keys)).where(~F.col(DELETED))
        base = as_published(without_keys(rest, touched.keys), followed).unionByName(
            _compute_touched(work, followed, types, published, touched, counting)
        )
    named = [find_named(work.read_live(n.dataset), n, computed, types) for n in added_namers(work, computed)]
    everybody = unite(computed, [explode_named(base, followed), *named])
    rows = carry_on(work, followed, everybody, base)
    filled = part_of(computed, columns.filled, columns.rows)
    values = _compute_uses(
        work, filled, types, everybody.select(*id_names(computed)), filled.uses, None, counting
    )
    rows = _finish(work, computed, rows.join(values, id_names(computed)))
    rows = with_kept(rows, own, computed, columns.kept)
    read = touched.keys.rows if touched is not None else 0
    return _counted(_replace_all(work, rows, own, lambda: read + counting.rows(), full_rows), counting)


def _recompute(
    work: Work, entity: Entity, types: Types, own: DataFrame, touched: Touched | None, full_rows: int
) -> Prepared:
    if touched is None or not touched.keys.count:
        # A column that misses what has arrived is marked in a commit, although no row differs.
        write = Write(operation=Operation.COUNTS, rows=own.where("false")) if work.stale else None
        return Prepared(write=write, rows_full=full_rows, live_rows=work.live_rows, scope=NOTHING, whole=True)
    keys, counting = touched.keys, _Counting(work)
    published = declared(work, read_own(work, keys)).where(~F.col(DELETED))
    rows = _finish(work, entity, _compute_touched(work, entity, types, published, touched, counting))
    rows = fit_types(with_kept(rows, published, entity, columns_of(work).kept), own, work)
    sides = tag(rows, NEW).unionByName(tag(published, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(sides), bury=True)
    prepared = replace_differences(
        work,
        staged,
        rows_read=keys.rows + counting.rows(),
        rows_full=full_rows,
        scope=Keys(count=keys.count, of="entities"),
        whole=True,
    )
    return _counted(prepared, counting)


def _compute_touched(
    work: Work, entity: Entity, types: Types, published: DataFrame, touched: Touched, counting: "_Counting"
) -> DataFrame:
    """The touched entities with who names them and their variables, except expressions."""
    everybody = name_again(work, entity, types, published, touched.keys, touched.namers)
    computed = _compute_uses(work, entity, types, everybody, touched.uses, touched.keys, counting)
    return carry_over(work, entity, computed, published, touched)


def _compared(sides: DataFrame) -> list[str]:
    """What must be equal for a row to stay: also what is kept beside the variables.

    Not the configuration: a commit says of each column which definition all of its rows have.
    """
    return [*compared_columns(sides, backfill=False), STATE]


class _Counting:
    """Counters of the rows that a task reads, which are known once it has been staged."""

    def __init__(self, work: Work) -> None:
        self._attempt = work.attempt
        self._observations: list[Observation] = []

    def count(self, rows: DataFrame, entity: Entity) -> DataFrame:
        observation = Observation(f"rows {len(self._observations)} of {self._attempt}")
        self._observations.append(observation)
        return rows.observe(
            observation,
            F.count(F.lit(1)).alias("rows"),
            F.count_if(~are_named(entity)).alias(WITHOUT_ENTITY),
        )

    def rows(self) -> int:
        return self._sum("rows")

    def without_entity(self) -> int:
        return self._sum(WITHOUT_ENTITY)

    def _sum(self, name: str) -> int:
        counted = [find_counts(observation) for observation in self._observations]
        return sum(counts[name] or 0 for counts in counted if counts)


def _counted(prepared: Prepared, counting: _Counting) -> Prepared:
    return replace(prepared, task_counts={WITHOUT_ENTITY: counting.without_entity()})


def _compute_uses(
    work: Work,
    entity: Entity,
    types: Types,
    everybody: DataFrame,
    uses: Collection[Use],
    keys: KeySet | None,
    counting: _Counting,
) -> DataFrame:
    """Everybody with the variables of these uses. `keys` restricts what is read."""
    result = everybody
    for use in uses:
        variables = at_time(entity.variables_of(use), work.as_of)
        rows = own_rows(work.read_live(use.dataset), use, entity, types, work.read_live)
        rows, conditions = with_conditions(rows, variables, work.as_of, work.project.calendar)
        if keys is not None:
            rows = keys.restrict(pruned(rows, list(conditions.values())), key_of(entity))
        rows = counting.count(rows, entity).where(are_named(entity))
        values = aggregate(rows, everybody, entity, use, variables, conditions)
        result = result.join(with_defaults(values, variables), id_names(entity))
    return result


def _finish(work: Work, entity: Entity, rows: DataFrame) -> DataFrame:
    """Rows as the table has them: expressions, ids by their names, metadata columns."""
    finished = with_expressions(rows, entity)
    ids: Mapping[str, str] = rename_ids(entity)
    columns = [
        *(F.col(name).alias(column) for name, column in ids.items()),
        *(F.col(quote(v.name)) for v in entity.variables),
    ]
    named = finished.select(*columns, make_state().alias(STATE))
    key: Sequence[str] = entity.id
    return named.withColumns({KEY: typed_key(key), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)})
