"""The variables of a use for everybody in a scope, from the rows of its dataset."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from strandline.compute.key_set import KeySet
from strandline.lake.work import Work
from strandline.model.entity import Entity, Use, Variable

from .bands import find_section
from .counting import Counting
from .ids import Types, are_named, id_names, key_of
from .owning import own_rows
from .parts import UseParts
from .selecting import aggregate, with_defaults
from .times import with_conditions


def compute_use(
    work: Work,
    entity: Entity,
    types: Types,
    everybody: DataFrame,
    use: Use,
    variables: Sequence[Variable],
    parts: UseParts,
    keys: KeySet | None,
    counting: Counting,
) -> DataFrame:
    """Variables of a use for everybody. `keys` restricts what is read."""
    as_of, calendar, rows = work.as_of, work.project.calendar, work.read_live(use.dataset)
    if keys is not None:
        rows = find_section(rows, variables, as_of, calendar)
    rows = own_rows(rows, use, entity, types, work.read_live)
    rows, conditions = with_conditions(rows, variables, as_of, calendar)
    if keys is not None:
        counted = rows.where(" OR ".join(dict.fromkeys(conditions.values())))
        rows = keys.restrict(counted, key_of(entity))
    rows = counting.count(rows, entity).where(are_named(entity))
    values = aggregate(rows, everybody, entity, variables, conditions, parts, as_of)
    return with_defaults(values, variables)


def compute_uses(
    work: Work,
    entity: Entity,
    types: Types,
    everybody: DataFrame,
    parts: Mapping[str, UseParts],
    counting: Counting,
) -> DataFrame:
    """Everybody with all variables that are not expressions, from all rows."""
    rows = everybody
    for use in entity.uses:
        of_use, variables = parts[use.name], entity.variables_of(use)
        values = compute_use(work, entity, types, everybody, use, variables, of_use, None, counting)
        rows = rows.join(values, id_names(entity))
    return rows


def compute_nothing(work: Work, entity: Entity, use: Use, newcomers: DataFrame, parts: UseParts) -> DataFrame:
    """What the variables of a use are for somebody new, who has no row in it: one would have named it."""
    nothing, variables = work.read_live(use.dataset).where("false"), entity.variables_of(use)
    rows, conditions = with_conditions(nothing, variables, work.as_of, work.project.calendar)
    values = aggregate(rows, newcomers, entity, variables, conditions, parts, work.as_of)
    return with_defaults(values, variables)
