"""Entities: the variables of the entities that a change, the clock or a person touches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.key_set import read_own
from strandline.compute.keys import typed_key
from strandline.compute.shape import fit_types
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work, Write
from strandline.model.columns import CONFIG, DELETED, KEY, STATE, quote
from strandline.model.commits import Operation
from strandline.model.entity import Entity
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .adding import add_up
from .carrying import (
    as_published,
    carry_on,
    carry_over,
    columns_of,
    find_retyped,
    with_kept,
    without_keys,
    without_undeclared,
)
from .computing import compute_use, compute_uses
from .counting import WITHOUT_ENTITY, Counting
from .ids import Types, entity_of, find_types, id_names, part_of, rename_ids
from .naming import added_namers, explode_named, find_named, name_again, name_everybody, unite
from .oracle import expect_entity
from .parts import UseParts
from .selecting import with_defaults, with_expressions
from .state import make_state, only_entries
from .touched import Touched, find_touched
from .ways import NOT_ADDED, choose_added, find_parts


class _LackingError(Exception):
    """What is published does not tell enough to add to it."""


def prepare(work: Work) -> Prepared:
    """Compute the entities of the task and compare them with what is published."""
    declared, columns = entity_of(work.node), columns_of(work)
    provide_calendar(work.session, work.project.calendar)
    published = None if work.task.overwrite else work.read_own()
    own = None if published is None else without_undeclared(work, published)
    computed = part_of(declared, columns.computed, columns.rows)
    types = find_types(work, computed, own)
    parts = find_parts(work, computed)
    if own is None or work.task.strategy is Strategy.FULL:
        return _compute_everybody(work, computed, types, own, parts)
    followed = part_of(declared, columns.followed, columns.rows - columns.named)
    scoped = _Scoped(work=work, entity=followed, types=types, own=own, parts=parts)
    if columns.is_whole:
        return _configure(scoped, computed)
    if work.task.strategy is not Strategy.ACCUMULATE:
        return scoped.prepare({})
    added, notes = choose_added(work, followed, parts)
    try:
        prepared = scoped.prepare(added)
    except _LackingError:
        again = replace(scoped, counting=Counting())
        prepared, notes = again.prepare({}), (*notes, NOT_ADDED)
    return replace(prepared, notes=(*prepared.notes, *notes))


def expect(work: Work) -> Expected:
    own = work.read_own()
    assert own is not None
    columns = columns_of(work)
    entity = part_of(entity_of(work.node), columns.followed, columns.rows)
    provide_calendar(work.session, work.project.calendar)
    rows = expect_entity(work, entity, find_types(work, entity, own))
    entries = [leaf.entry for parts in find_parts(work, entity).values() for leaf in parts.leaves]
    published = own.where(~F.col(DELETED)).withColumn(STATE, only_entries(entries))
    return Expected(rows=rows, published=published, sampled_by=entity.id)


def _compute_everybody(
    work: Work, entity: Entity, types: Types, own: DataFrame | None, parts: Mapping[str, UseParts]
) -> Prepared:
    everybody, counting = name_everybody(work, entity, types), Counting()
    rows = _finish(work, entity, compute_uses(work, entity, types, everybody, parts, counting))
    if own is None:
        return _counted(write_whole(work, rows, rows_full=_count_all(work)), counting)
    rows = with_kept(rows, own, entity, columns_of(work).kept)
    return _counted(_replace_all(work, rows, own, lambda: _count_all(work)), counting)


def _count_all(work: Work) -> int:
    """The rows of all inputs."""
    return sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)


def _replace_all(work: Work, rows: DataFrame, own: DataFrame, count_read: Callable[[], int]) -> Prepared:
    """The write that makes all published rows equal to these.

    The table is replaced if it loses a column, or if one that is filled gets another type.
    """
    columns, retyped = columns_of(work), find_retyped(rows, own)
    if columns.dropped or (retyped and (work.task.reshapes or retyped <= columns.filled)):
        return replace(write_whole(work, rows, rows_full=_count_all(work)), rows_read=count_read())
    rows = fit_types(rows, own, work)
    sides = tag(rows, NEW).unionByName(tag(own.where(~F.col(DELETED)), OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, _compared(sides), bury=True)
    return replace_differences(
        work, staged, rows_read=count_read(), rows_full=_count_all(work), scope=EVERYTHING, whole=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoped:
    """The entities that a task touches, computed from what is published and from what they need to read."""

    work: Work
    entity: Entity
    """With the variables that are published as they are declared."""
    types: Types
    own: DataFrame
    parts: Mapping[str, UseParts]
    """By use: the variables of which `_state` says enough to add to them."""
    counting: Counting = field(default_factory=Counting)

    def prepare(self, added: Mapping[str, UseParts]) -> Prepared:
        """The write for a task. `added`: by use, the variables that are added to; others are computed again.

        Raises `_LackingError` if what is published does not tell enough to add to it.
        """
        work, entity = self.work, self.entity
        touched = self.find_touched(added)
        if touched is None or not touched.keys.count:
            return _counted(_change_nothing(work, self.own), self.counting)
        keys, published = touched.keys, self.read_published(touched)
        rows = _finish(work, entity, self.compute(touched, published, added))
        rows = fit_types(with_kept(rows, published, entity, columns_of(work).kept), self.own, work)
        sides = tag(rows, NEW).unionByName(tag(published, OLD), allowMissingColumns=True)
        staged = stage_differences(work, sides, _compared(sides), bury=True)
        if self.counting.lacking():
            raise _LackingError
        prepared = replace_differences(
            work,
            staged,
            rows_read=keys.rows + self.counting.rows(),
            rows_full=_count_all(work),
            scope=Keys(count=keys.count, of="entities"),
            whole=True,
        )
        return _counted(prepared, self.counting)

    def find_touched(self, added: Mapping[str, UseParts]) -> Touched | None:
        nothing = {use.name: self.parts[use.name].only(()) for use in self.entity.uses}
        return find_touched(self.work, self.entity, self.types, self.own, {**nothing, **added}, self.counting)

    def read_published(self, touched: Touched) -> DataFrame:
        rows = read_own(self.work, touched.keys).where(~F.col(DELETED))
        return without_undeclared(self.work, rows)

    def compute(self, touched: Touched, published: DataFrame, added: Mapping[str, UseParts]) -> DataFrame:
        """The touched entities with who names them and their variables, except expressions."""
        work, entity, types, keys = self.work, self.entity, self.types, touched.keys
        everybody = name_again(work, entity, types, published, keys, touched.namers)
        rows = everybody
        uses = [added[use.name] for use in touched.uses if use.name in added]
        if touched.deltas is not None:
            values = add_up(entity, everybody, published, touched.deltas, uses)
            variables = [leaf.variable for of_use in uses for leaf in of_use.leaves]
            rows = rows.join(with_defaults(values, variables), id_names(entity))
        for use in touched.uses:
            names = {leaf.variable.name for leaf in added[use.name].leaves} if use.name in added else set()
            again = [v for v in entity.variables_of(use) if v.name not in names]
            if again:
                parts = self.parts[use.name].only([v.name for v in again])
                values = compute_use(work, entity, types, everybody, use, again, parts, keys, self.counting)
                rows = rows.join(values, id_names(entity))
        if uses:
            rows = self.counting.count_lacking(rows)
        unread = [use for use in entity.uses if use not in touched.uses]
        return carry_over(work, entity, rows, published, unread, self.parts)


def _configure(scoped: _Scoped, computed: Entity) -> Prepared:
    """Fill columns for every entity, from their own inputs alone, and drop others.

    The columns that are as declared are computed again for touched entities only.
    """
    work, followed, types, counting = scoped.work, scoped.entity, scoped.types, scoped.counting
    columns, touched = columns_of(work), scoped.find_touched({})
    of_followed = find_parts(work, followed)
    rest, read = scoped.own.where(~F.col(DELETED)), 0
    base = as_published(rest, followed, followed.uses, of_followed)
    if touched is not None and touched.keys.count:
        again = replace(scoped, parts=of_followed).compute(touched, scoped.read_published(touched), {})
        base = as_published(without_keys(rest, touched.keys), followed, followed.uses, of_followed)
        base, read = base.unionByName(again), touched.keys.rows
    named = [find_named(work.read_live(n.dataset), n, computed, types) for n in added_namers(work, computed)]
    everybody = unite(computed, [explode_named(base, followed), *named])
    rows = carry_on(work, followed, everybody, base, of_followed)
    filled = part_of(computed, columns.filled, columns.rows)
    ids = everybody.select(*id_names(computed))
    values = compute_uses(work, filled, types, ids, find_parts(work, filled), counting)
    rows = _finish(work, computed, rows.join(values, id_names(computed)))
    rows = with_kept(rows, scoped.own, computed, columns.kept)
    return _counted(_replace_all(work, rows, scoped.own, lambda: read + counting.rows()), counting)


def _change_nothing(work: Work, own: DataFrame) -> Prepared:
    """No row differs. That a column misses what has arrived is still recorded by a commit."""
    write = Write(operation=Operation.COUNTS, rows=own.where("false")) if work.stale else None
    return Prepared(
        write=write, rows_full=_count_all(work), live_rows=work.live_rows, scope=NOTHING, whole=True
    )


def _compared(sides: DataFrame) -> list[str]:
    """What must be equal for a row to stay: also what is kept beside the variables.

    Not the configuration: a commit says of each column which definition all of its rows have.
    """
    return [*compared_columns(sides, backfill=False), STATE]


def _counted(prepared: Prepared, counting: Counting) -> Prepared:
    return replace(prepared, task_counts={WITHOUT_ENTITY: counting.without_entity()})


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
