"""Entities: the variables of the entities that a change, the clock or a person touches."""

from collections.abc import Collection, Mapping, Sequence
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
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY, STATE, quote
from strandline.model.entity import Entity, Use
from strandline.model.plan import Cause, Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .bands import pruned
from .ids import Types, are_named, entity_of, find_types, id_names, key_of, rename_ids
from .naming import make_state, name_again, name_everybody
from .oracle import expect_entity
from .owning import own_rows
from .selecting import aggregate, at_time, with_conditions, with_defaults, with_expressions
from .touched import Touched, find_touched

WITHOUT_ENTITY = "without_entity"
"""The count of rows that name no entity."""


def prepare(work: Work) -> Prepared:
    """Compute the entities of the task and compare them with what is published."""
    entity = entity_of(work.node)
    provide_calendar(work.session, work.project.calendar)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    own = None if work.task.overwrite else work.read_own()
    types = find_types(work, entity, own)
    if own is not None and work.task.strategy is Strategy.RECOMPUTE:
        return _recompute(work, entity, types, own, full_rows)
    return _compute_everybody(work, entity, types, own, full_rows)


def expect(work: Work) -> Expected:
    own = work.read_own()
    assert own is not None
    entity = entity_of(work.node)
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
    rows = fit_types(rows, own, work)
    sides = tag(rows, NEW).unionByName(tag(own.where(~F.col(DELETED)), OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(work, sides), bury=True)
    prepared = replace_differences(
        work, staged, rows_read=full_rows, rows_full=full_rows, scope=EVERYTHING, whole=True
    )
    return _counted(prepared, counting)


def _recompute(work: Work, entity: Entity, types: Types, own: DataFrame, full_rows: int) -> Prepared:
    touched = find_touched(work, entity, types, own)
    if touched is None or not touched.keys.count:
        return Prepared(write=None, rows_full=full_rows, live_rows=work.live_rows, scope=NOTHING)
    keys, counting = touched.keys, _Counting(work)
    published = read_own(work, keys).where(~F.col(DELETED))
    everybody = name_again(work, entity, types, published, keys, touched.namers)
    computed = _compute_uses(work, entity, types, everybody, touched.uses, keys, counting)
    rows = _finish(work, entity, _carry_over(work, entity, computed, published, touched))
    rows = fit_types(rows, own, work)
    sides = tag(rows, NEW).unionByName(tag(published, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(work, sides), bury=True)
    prepared = replace_differences(
        work,
        staged,
        rows_read=keys.rows + counting.rows(),
        rows_full=full_rows,
        scope=Keys(count=keys.count, of="entities"),
        whole=False,
    )
    return _counted(prepared, counting)


def _compared(work: Work, sides: DataFrame) -> list[str]:
    """What must be equal for a row to stay: also what is kept beside the variables."""
    return [*compared_columns(sides, backfill=work.task.cause is Cause.PERSON), STATE]


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


def _carry_over(
    work: Work, entity: Entity, computed: DataFrame, published: DataFrame, touched: Touched
) -> DataFrame:
    """Computed rows with the published columns of the uses that were not read.

    Whoever is new has no row in those uses: one would have named it. It gets what they give over no rows.
    """
    ids = id_names(entity)
    kept = published.select(
        *(F.col(quote(column)).alias(name) for name, column in rename_ids(entity).items()),
        *(quote(v.name) for v in entity.variables if not v.expr),
    )
    newcomers = computed.select(*ids).join(kept.select(*ids), ids, "left_anti")
    for use in entity.uses:
        if use in touched.uses:
            continue
        variables = at_time(entity.variables_of(use), work.as_of)
        nothing, conditions = with_conditions(
            work.read_live(use.dataset).where("false"), variables, work.as_of, work.project.calendar
        )
        blank = with_defaults(aggregate(nothing, newcomers, entity, use, variables, conditions), variables)
        names = [quote(v.name) for v in variables]
        computed = computed.join(kept.select(*ids, *names).unionByName(blank), ids)
    return computed


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
