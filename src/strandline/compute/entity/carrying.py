"""What a task leaves as it is published: the columns that it does not compute, and the rows that it skips."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.key_set import KeySet
from strandline.compute.keys import user_columns
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY, quote
from strandline.model.definitions import ColumnWork
from strandline.model.entity import Entity, Use

from .ids import id_names, rename_ids
from .naming import NAMED, named_by
from .selecting import aggregate, at_time, with_conditions, with_defaults
from .touched import Touched


def columns_of(work: Work) -> ColumnWork:
    """What the task does with each column."""
    assert work.columns is not None
    return work.columns


def read_declared(work: Work) -> DataFrame | None:
    """The published rows without the columns that are not declared any more. None before the first commit."""
    own = work.read_own()
    return None if own is None else declared(work, own)


def declared(work: Work, rows: DataFrame) -> DataFrame:
    """Published rows without the columns that are not declared any more."""
    return rows.drop(*(c for c in user_columns(rows.columns) if c not in work.node.columns))


def as_published(rows: DataFrame, entity: Entity) -> DataFrame:
    """Published rows with the ids of a computation, who names them, and their variables. No expressions."""
    return rows.select(
        *(F.col(quote(column)).alias(name) for name, column in rename_ids(entity).items()),
        named_by(entity).alias(NAMED),
        *(quote(v.name) for v in entity.variables if not v.expr),
    )


def without_keys(rows: DataFrame, keys: KeySet) -> DataFrame:
    """The published rows that are not in a scope."""
    if keys.staged is None:
        listed = ", ".join(map(str, keys.listed or ())) or "NULL"
        return rows.where(f"NOT coalesce({KEY} IN ({listed}), false)")
    return rows.join(F.broadcast(keys.staged.read(rows.sparkSession).select(KEY)), KEY, "left_anti")


def carry_over(
    work: Work, entity: Entity, computed: DataFrame, published: DataFrame, touched: Touched
) -> DataFrame:
    """Computed rows with the published columns of the uses that were not read."""
    kept = as_published(published, entity).drop(NAMED)
    ids = id_names(entity)
    newcomers = computed.select(*ids).join(kept.select(*ids), ids, "left_anti")
    for use in entity.uses:
        if use in touched.uses:
            continue
        names = [quote(v.name) for v in entity.variables_of(use)]
        carried = kept.select(*ids, *names).unionByName(_over_nothing(work, entity, use, newcomers))
        computed = computed.join(carried, ids)
    return computed


def carry_on(work: Work, entity: Entity, everybody: DataFrame, base: DataFrame) -> DataFrame:
    """Everybody with the variables that they have in `base`, or with those of somebody who has no rows."""
    ids, kept = id_names(entity), base.drop(NAMED)
    newcomers = everybody.select(*ids).join(kept.select(*ids), ids, "left_anti")
    blank = newcomers
    for use in entity.uses:
        blank = blank.join(_over_nothing(work, entity, use, newcomers), ids)
    return everybody.join(kept.unionByName(blank), ids)


def _over_nothing(work: Work, entity: Entity, use: Use, newcomers: DataFrame) -> DataFrame:
    """What the variables of a use are for somebody new, who has no row in it: one would have named it."""
    variables = at_time(entity.variables_of(use), work.as_of)
    nothing, conditions = with_conditions(
        work.read_live(use.dataset).where("false"), variables, work.as_of, work.project.calendar
    )
    return with_defaults(aggregate(nothing, newcomers, entity, use, variables, conditions), variables)


def with_kept(rows: DataFrame, published: DataFrame, entity: Entity, kept: frozenset[str]) -> DataFrame:
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
