"""Who exists: the entities that namers name, and what `_state` keeps of that."""

from collections.abc import Collection, Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.key_set import KeySet
from strandline.lake.work import Work
from strandline.model.columns import KEY, quote
from strandline.model.definitions import ROWS_PART
from strandline.model.entity import Entity, Namer

from .ids import Types, are_named, id_names, key_of, rename_ids, with_ids
from .state import NAMED, named_in_state

_NAMER = "__namer"


def named_by(entity: Entity) -> Column:
    """The namers that a published row lists, without those that the entity does not have any more."""
    names = [namer.name for namer in entity.namers]
    return F.filter(named_in_state(), lambda name: name.isin(names))


def added_namers(work: Work, entity: Entity) -> list[Namer]:
    """The namers that the published rows do not know yet."""
    assert work.columns is not None
    return [n for n in entity.namers if f"{ROWS_PART} {n.name}" in work.columns.named]


def explode_named(rows: DataFrame, entity: Entity) -> DataFrame:
    """The ids of rows, once for each of their namers."""
    return rows.select(*id_names(entity), F.explode(NAMED).alias(_NAMER))


def find_named(
    rows: DataFrame, namer: Namer, entity: Entity, types: Types, keys: KeySet | None = None
) -> DataFrame:
    """The ids that rows of a namer name, with its name. Each may occur several times."""
    named = with_ids(rows, namer.columns, entity, types).where(are_named(entity))
    if keys is not None:
        named = keys.restrict(named, key_of(entity))
    return named.select(*id_names(entity), F.lit(namer.name).alias(_NAMER))


def name_everybody(work: Work, entity: Entity, types: Types) -> DataFrame:
    """Everybody who exists at the versions of the task."""
    named = [find_named(work.read_live(n.dataset), n, entity, types) for n in entity.namers]
    return unite(entity, named)


def name_again(
    work: Work,
    entity: Entity,
    types: Types,
    own: DataFrame,
    keys: KeySet,
    changed: Collection[Namer],
) -> DataFrame:
    """Who of a scope exists now: what the namers that changed say, and what the others said before.

    `own` are the published rows of the scope.
    """
    named = [
        find_named(
            work.read_added(n.dataset) if n.for_ever else work.read_live(n.dataset), n, entity, types, keys
        )
        for n in changed
    ]
    anew = [n.name for n in changed if not n.for_ever]
    kept = [n.name for n in entity.namers if n.name not in anew]
    return unite(entity, [_explode(own, entity).where(F.col(_NAMER).isin(kept)), *named])


def _explode(own: DataFrame, entity: Entity) -> DataFrame:
    ids = [F.col(quote(column)).alias(name) for name, column in rename_ids(entity).items()]
    return own.select(*ids, F.explode(named_in_state()).alias(_NAMER))


def unite(entity: Entity, named: Iterable[DataFrame]) -> DataFrame:
    """Each entity once, with all its namers."""
    together = reduce(DataFrame.unionByName, named)
    return together.groupBy(*id_names(entity)).agg(F.sort_array(F.collect_set(_NAMER)).alias(NAMED))


def find_new(rows: DataFrame, namer: Namer, entity: Entity, types: Types, own: DataFrame) -> DataFrame:
    """The ids that new facts name and that `_state` does not list under this namer yet."""
    ids: Sequence[str] = id_names(entity)
    named = find_named(rows, namer, entity, types).select(*ids).distinct()
    # Few rows of the output are looked at: to read every state would take longer than all the rest.
    few = own.join(F.broadcast(named.select(key_of(entity).alias(KEY))), KEY, "left_semi")
    listed = _explode(few, entity).where(F.col(_NAMER) == namer.name).select(*ids)
    return named.join(listed, list(ids), "left_anti")
