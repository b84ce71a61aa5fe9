"""The variables of every entity, computed without the code that a task uses to choose and restrict (L2).

It shares with a task what defines the result: how a `select` is computed, what `_state` keeps, and which
values fit an id. Whoever
exists is found from the namers alone. Nothing here uses scopes, bands, `_state` or published rows.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.work import Work
from strandline.model.columns import STATE, quote
from strandline.model.entity import Entity, Use

from .ids import Types, are_named, id_names, with_ids
from .parts import make_parts
from .selecting import aggregate, with_defaults, with_expressions
from .state import NAMED, make_state
from .times import with_conditions

_ROW = "__row"


def expect_entity(work: Work, entity: Entity, types: Types) -> DataFrame:
    ids = id_names(entity)
    named = [
        with_ids(work.read_live(namer.dataset), namer.columns, entity, types)
        .where(are_named(entity))
        .select(*ids, F.lit(namer.name).alias("__by"))
        .distinct()
        for namer in entity.namers
    ]
    namers = F.sort_array(F.collect_list("__by"))
    everybody = reduce(DataFrame.unionByName, named).groupBy(*ids).agg(namers.alias(NAMED))
    rows = everybody
    for number, use in enumerate(entity.uses):
        variables = entity.variables_of(use)
        parts = make_parts(use, variables, work.read_live(use.dataset), f"p{number}")
        owned, conditions = with_conditions(
            _own(work, use, entity, types), variables, work.as_of, work.project.calendar
        )
        values = aggregate(owned, everybody, entity, variables, conditions, parts, work.as_of)
        rows = rows.join(with_defaults(values, variables), ids)
    finished = with_expressions(rows, entity)
    return finished.select(
        *(F.col(name).alias(column) for name, column in zip(ids, entity.id, strict=True)),
        *(F.col(quote(v.name)) for v in entity.variables),
        make_state(finished.columns).alias(STATE),
    )


def _own(work: Work, use: Use, entity: Entity, types: Types) -> DataFrame:
    """The rows of a use with the ids of their owners. With `via`, each row is followed by itself."""
    rows = work.read_live(use.dataset)
    columns = rows.columns
    if use.via:
        rows = rows.withColumn(_ROW, F.monotonically_increasing_id()).localCheckpoint(eager=True)
    here = rows
    for place, step in enumerate(use.via):
        there = work.read_live(step.dataset)
        there = there.select(*(F.col(quote(c)).alias(f"__{place}_{c}") for c in there.columns))
        before = f"__{place - 1}_" if place else ""
        same = [F.col(quote(f"{before}{a}")) == F.col(quote(f"__{place}_{b}")) for a, b in step.on]
        here = here.join(there, same)
    last = f"__{len(use.via) - 1}_" if use.via else ""
    owned = with_ids(here, [f"{last}{column}" for column in use.columns], entity, types)
    owned = owned.where(are_named(entity))
    if not use.via:
        return owned
    return owned.dropDuplicates([_ROW, *id_names(entity)]).select(*map(quote, columns), *id_names(entity))
