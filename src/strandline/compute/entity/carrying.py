"""What a task leaves as it is published: the columns that it does not compute, and the rows that it skips."""

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.key_set import KeySet
from strandline.compute.keys import user_columns
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY, quote
from strandline.model.definitions import ColumnWork
from strandline.model.entity import Entity, Use

from .computing import compute_nothing
from .ids import id_names, rename_ids
from .naming import named_by
from .parts import UseParts
from .state import NAMED, name_entry, read_state


def columns_of(work: Work) -> ColumnWork:
    """What the task does with each column."""
    assert work.columns is not None
    return work.columns


def without_undeclared(work: Work, rows: DataFrame) -> DataFrame:
    """Published rows without the columns that are not declared any more."""
    return rows.drop(*(c for c in user_columns(rows.columns) if c not in work.node.columns))


def as_published(
    rows: DataFrame, entity: Entity, uses: Collection[Use], parts: Mapping[str, UseParts]
) -> DataFrame:
    """Published rows with the ids of a computation, who names them, and the variables of some uses.

    With what their state keeps of these.
    """
    entries = [leaf.entry for use in uses for leaf in parts[use.name].leaves if leaf.kept]
    names = [v.name for use in uses for v in entity.variables_of(use)]
    renamed = rows.withColumns({name: F.col(quote(column)) for name, column in rename_ids(entity).items()})
    return read_state(renamed, entries).select(
        *id_names(entity),
        named_by(entity).alias(NAMED),
        *map(quote, (*names, *map(name_entry, entries))),
    )


def without_keys(rows: DataFrame, keys: KeySet) -> DataFrame:
    """The published rows that are not in a scope."""
    if keys.staged is None:
        listed = ", ".join(map(str, keys.listed or ())) or "NULL"
        return rows.where(f"NOT coalesce({KEY} IN ({listed}), false)")
    return rows.join(F.broadcast(keys.staged.read(rows.sparkSession).select(KEY)), KEY, "left_anti")


def carry_over(
    work: Work,
    entity: Entity,
    computed: DataFrame,
    published: DataFrame,
    uses: Collection[Use],
    parts: Mapping[str, UseParts],
) -> DataFrame:
    """Computed rows with the published columns of uses that were not read, and their state.

    Whoever is new has no row in those uses. It gets what they give over no rows.
    """
    ids = id_names(entity)
    for use in uses:
        kept = as_published(published, entity, [use], parts).drop(NAMED)
        newcomers = computed.select(*ids).join(kept.select(*ids), ids, "left_anti")
        blank = compute_nothing(work, entity, use, newcomers, parts[use.name])
        computed = computed.join(kept.unionByName(blank.select(*map(quote, kept.columns))), ids)
    return computed


def carry_on(
    work: Work, entity: Entity, everybody: DataFrame, base: DataFrame, parts: Mapping[str, UseParts]
) -> DataFrame:
    """Everybody with the variables that they have in `base`. It has no row of whoever only others name."""
    ids, kept = id_names(entity), base.drop(NAMED)
    newcomers = everybody.select(*ids).join(kept.select(*ids), ids, "left_anti")
    blank = newcomers
    for use in entity.uses:
        blank = blank.join(compute_nothing(work, entity, use, newcomers, parts[use.name]), ids)
    return everybody.join(kept.unionByName(blank.select(*map(quote, kept.columns))), ids)


def with_kept(rows: DataFrame, published: DataFrame, entity: Entity, kept: Collection[str]) -> DataFrame:
    """Rows with the columns that stay as they are published. They are NULL for somebody new."""
    names = [c for c in published.columns if c in kept]
    if not names:
        return rows
    ids = list(entity.id)
    return rows.join(published.where(~F.col(DELETED)).select(*map(quote, (*ids, *names))), ids, "left")


def find_retyped(rows: DataFrame, own: DataFrame) -> frozenset[str]:
    """The columns that a result has in another type than its table."""
    stored = {f.name: f.dataType.simpleString() for f in own.schema}
    return frozenset(
        f.name for f in rows.schema if f.name in stored and stored[f.name] != f.dataType.simpleString()
    )
