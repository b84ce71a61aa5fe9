"""Entities: the variables of the entities that a change, the clock or a person touches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from strandline.model.entity import Entity, Use, Variable
from strandline.model.plan import Cause, Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .adding import add_up
from .bands import pruned
from .ids import Types, are_named, entity_of, find_types, id_names, key_of, rename_ids
from .naming import name_again, name_everybody
from .oracle import expect_entity
from .owning import own_rows
from .parts import UseParts
from .selecting import aggregate, with_defaults, with_expressions
from .state import LACKS, make_state, name_entry, read_state
from .times import with_conditions
from .touched import Touched, find_touched
from .ways import NOT_ADDED, choose_added, find_parts

WITHOUT_ENTITY = "without_entity"
"""The count of rows that name no entity."""


class _LackingError(Exception):
    """What is published does not tell enough to add to it."""


def prepare(work: Work) -> Prepared:
    """Compute the entities of the task and compare them with what is published."""
    entity = entity_of(work.node)
    provide_calendar(work.session, work.project.calendar)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    own = None if work.task.overwrite else work.read_own()
    types = find_types(work, entity, own)
    parts = find_parts(work, entity)
    if own is None or work.task.strategy is Strategy.FULL:
        return _compute_everybody(work, entity, types, own, parts, full_rows)
    scoped = _Scoped(work=work, entity=entity, types=types, own=own, parts=parts, full_rows=full_rows)
    if work.task.strategy is not Strategy.ACCUMULATE:
        return scoped.compute({})
    added, notes = choose_added(work, entity, parts)
    try:
        prepared = scoped.compute(added)
    except _LackingError:
        prepared, notes = scoped.compute({}), (*notes, NOT_ADDED)
    return replace(prepared, notes=(*prepared.notes, *notes))


def expect(work: Work) -> Expected:
    own = work.read_own()
    assert own is not None
    entity = entity_of(work.node)
    provide_calendar(work.session, work.project.calendar)
    rows = expect_entity(work, entity, find_types(work, entity, own))
    return Expected(rows=rows, published=own.where(~F.col(DELETED)), sampled_by=entity.id)


def _compute_everybody(
    work: Work,
    entity: Entity,
    types: Types,
    own: DataFrame | None,
    parts: Mapping[str, UseParts],
    full_rows: int,
) -> Prepared:
    everybody, counting = name_everybody(work, entity, types), _Counting()
    rows = everybody
    for use in entity.uses:
        variables = entity.variables_of(use)
        values = _compute_use(work, entity, types, everybody, use, variables, parts[use.name], None, counting)
        rows = rows.join(values, id_names(entity))
    rows = _finish(work, entity, rows)
    if own is None:
        return _counted(write_whole(work, rows, rows_full=full_rows), counting)
    rows = fit_types(rows, own, work)
    sides = tag(rows, NEW).unionByName(tag(own.where(~F.col(DELETED)), OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(work, sides), bury=True)
    prepared = replace_differences(
        work, staged, rows_read=full_rows, rows_full=full_rows, scope=EVERYTHING, whole=True
    )
    return _counted(prepared, counting)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoped:
    """The entities that a task touches, computed from what is published and from what they need to read."""

    work: Work
    entity: Entity
    types: Types
    own: DataFrame
    parts: Mapping[str, UseParts]
    """By use: the variables of which `_state` says enough to add to them."""
    full_rows: int

    def compute(self, added: Mapping[str, UseParts]) -> Prepared:
        """The write for a task. `added`: by use, the variables that are added to; others are computed again.

        Raises `_LackingError` if what is published does not tell enough to add to it.
        """
        work, entity = self.work, self.entity
        nothing = {use.name: self.parts[use.name].only(()) for use in entity.uses}
        added = {**nothing, **added}
        touched = find_touched(work, entity, self.types, self.own, added)
        if touched is None or not touched.keys.count:
            return Prepared(write=None, rows_full=self.full_rows, live_rows=work.live_rows, scope=NOTHING)
        keys, counting = touched.keys, _Counting()
        published = read_own(work, keys).where(~F.col(DELETED))
        everybody = name_again(work, entity, self.types, published, keys, touched.namers)
        rows = everybody
        uses = [added[use.name] for use in touched.uses if added[use.name].leaves]
        if touched.deltas is not None:
            values = add_up(entity, everybody, published, touched.deltas, uses)
            variables = [leaf.variable for of_use in uses for leaf in of_use.leaves]
            rows = rows.join(with_defaults(values, variables), id_names(entity))
        for use in touched.uses:
            names = {leaf.variable.name for leaf in added[use.name].leaves}
            again = [v for v in entity.variables_of(use) if v.name not in names]
            if again:
                of_use = self.parts[use.name].only([v.name for v in again])
                values = _compute_use(work, entity, self.types, everybody, use, again, of_use, keys, counting)
                rows = rows.join(values, id_names(entity))
        if uses:
            rows = counting.count_lacking(rows)
        rows = _finish(work, entity, self._carry_over(rows, published, touched))
        rows = fit_types(rows, self.own, work)
        sides = tag(rows, NEW).unionByName(tag(published, OLD), allowMissingColumns=True)
        staged = stage_differences(work, sides, _compared(work, sides), bury=True)
        if counting.lacking():
            raise _LackingError
        prepared = replace_differences(
            work,
            staged,
            rows_read=keys.rows + counting.rows(),
            rows_full=self.full_rows,
            scope=Keys(count=keys.count, of="entities"),
            whole=False,
        )
        return _counted(prepared, counting)

    def _carry_over(self, computed: DataFrame, published: DataFrame, touched: Touched) -> DataFrame:
        """Computed rows with the published columns of the uses that were not read, and their state.

        Whoever is new has no row in those uses: one would have named it. It gets what they give over no rows.
        """
        work, entity, ids = self.work, self.entity, id_names(self.entity)
        for use in entity.uses:
            if use in touched.uses:
                continue
            variables, parts = entity.variables_of(use), self.parts[use.name]
            entries = [leaf.entry for leaf in parts.leaves if leaf.kept]
            names = [quote(v.name) for v in variables] + [quote(name_entry(entry)) for entry in entries]
            renamed = published.withColumns(
                {name: F.col(quote(column)) for name, column in rename_ids(entity).items()}
            )
            kept = read_state(renamed, entries).select(*ids, *names)
            newcomers = computed.select(*ids).join(kept.select(*ids), ids, "left_anti")
            nothing = work.read_live(use.dataset).where("false")
            blank = _aggregate(work, entity, nothing, newcomers, variables, parts)
            computed = computed.join(kept.unionByName(blank.select(*ids, *names)), ids)
        return computed


def _compared(work: Work, sides: DataFrame) -> list[str]:
    """What must be equal for a row to stay: also what is kept beside the variables."""
    return [*compared_columns(sides, backfill=work.task.cause is Cause.PERSON), STATE]


class _Counting:
    """Counters of the rows that a task reads, which are known once it has been staged."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []
        self._lacking: Observation | None = None

    def count(self, rows: DataFrame, entity: Entity) -> DataFrame:
        observation = Observation()
        self._observations.append(observation)
        return rows.observe(
            observation,
            F.count(F.lit(1)).alias("rows"),
            F.count_if(~are_named(entity)).alias(WITHOUT_ENTITY),
        )

    def count_lacking(self, rows: DataFrame) -> DataFrame:
        self._lacking = Observation()
        return rows.observe(self._lacking, F.count_if(F.col(LACKS)).alias("lacking")).drop(LACKS)

    def lacking(self) -> int:
        """The entities whose published row does not tell enough to add to it."""
        counts = find_counts(self._lacking) if self._lacking is not None else None
        return counts["lacking"] or 0 if counts else 0

    def rows(self) -> int:
        return self._sum("rows")

    def without_entity(self) -> int:
        return self._sum(WITHOUT_ENTITY)

    def _sum(self, name: str) -> int:
        counted = [find_counts(observation) for observation in self._observations]
        return sum(counts[name] or 0 for counts in counted if counts)


def _counted(prepared: Prepared, counting: _Counting) -> Prepared:
    return replace(prepared, task_counts={WITHOUT_ENTITY: counting.without_entity()})


def _compute_use(
    work: Work,
    entity: Entity,
    types: Types,
    everybody: DataFrame,
    use: Use,
    variables: Sequence[Variable],
    parts: UseParts,
    keys: KeySet | None,
    counting: _Counting,
) -> DataFrame:
    """Variables of a use for everybody. `keys` restricts what is read."""
    rows = own_rows(work.read_live(use.dataset), use, entity, types, work.read_live)
    rows, conditions = with_conditions(rows, variables, work.as_of, work.project.calendar)
    if keys is not None:
        rows = keys.restrict(pruned(rows, list(conditions.values())), key_of(entity))
    rows = counting.count(rows, entity).where(are_named(entity))
    values = aggregate(rows, everybody, entity, variables, conditions, parts, work.as_of)
    return with_defaults(values, variables)


def _aggregate(
    work: Work,
    entity: Entity,
    rows: DataFrame,
    everybody: DataFrame,
    variables: Sequence[Variable],
    parts: UseParts,
) -> DataFrame:
    """What variables of a use are over rows that have no owner yet, and that nobody has to be read for."""
    rows, conditions = with_conditions(rows, variables, work.as_of, work.project.calendar)
    values = aggregate(rows, everybody, entity, variables, conditions, parts, work.as_of)
    return with_defaults(values, variables)


def _finish(work: Work, entity: Entity, rows: DataFrame) -> DataFrame:
    """Rows as the table has them: expressions, ids by their names, metadata columns."""
    finished = with_expressions(rows, entity)
    ids: Mapping[str, str] = rename_ids(entity)
    columns = [
        *(F.col(name).alias(column) for name, column in ids.items()),
        *(F.col(quote(v.name)) for v in entity.variables),
    ]
    named = finished.select(*columns, make_state(finished.columns).alias(STATE))
    key: Sequence[str] = entity.id
    return named.withColumns({KEY: typed_key(key), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)})
