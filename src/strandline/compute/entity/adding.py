"""What changed rows, and rows that cross a border, add to the parts of variables.

    part(B, new rows) = part(A, old rows) + sum over changes of sign * weight(row, A)
                        + sum over rows of the new state in bands of (weight(row, B) - weight(row, A))

A is the time at which the output was computed last, B the time of the task. The rows in bands are those of
the new state at both times, so a row that changes and crosses a border in one task counts once.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.reads import SIGN
from strandline.lake.staging import Staged
from strandline.model.columns import quote
from strandline.model.entity import Entity
from strandline.model.project import Calendar

from .ids import id_names, rename_ids
from .parts import SIGNED, Part, PartKind, UseParts
from .selecting import settle, value_columns
from .state import LACKS, read_parts
from .times import add_conditions, conditions_at, explained

READ = "__read_rows"
"""1 for a row that is read, 0 where it is looked at again."""


def weigh_changes(
    changes: DataFrame, added: UseParts, entity: Entity, before: datetime, calendar: Calendar
) -> DataFrame:
    """Changed rows, each with the id of its owner, weighed at the old time."""
    signed = changes.withColumns({SIGNED: F.signum(SIGN).cast("int"), READ: F.lit(1)})
    if added.leaves:
        # Equal rows are netted into one, with their number as its sign.
        signed = signed.withColumn("__copy", F.expr(f"explode(sequence(1, abs({SIGN})))"))
    return _weigh(signed, added, entity, before, before, calendar)


def weigh_crossing(
    crossing: DataFrame,
    added: UseParts,
    entity: Entity,
    before: datetime,
    now: datetime,
    calendar: Calendar,
) -> DataFrame:
    """Rows in bands, each with the id of its owner, weighed at the new time less the old.

    Each row comes at the new time and leaves at the old one. They are read once for both.
    """
    if not added.leaves:
        return _weigh(crossing.withColumn(READ, F.lit(1)), added, entity, before, now, calendar)
    both = crossing.withColumn(SIGNED, F.expr("explode(array(1, -1))"))
    both = both.withColumn(READ, F.expr(f"CASE WHEN {SIGNED} > 0 THEN 1 ELSE 0 END"))
    return _weigh(both, added, entity, before, now, calendar)


def _weigh(
    rows: DataFrame, added: UseParts, entity: Entity, left_at: datetime, came_at: datetime, calendar: Calendar
) -> DataFrame:
    """What rows with ids and a sign add to each part, at the time at which they leave or come."""
    variables = list({leaf.variable.name: leaf.variable for leaf in added.leaves}.values())
    if not variables:
        return rows.select(*id_names(entity), READ)

    def compute() -> DataFrame:
        left = conditions_at(rows, variables, left_at, calendar)
        came = conditions_at(rows, variables, came_at, calendar)
        counted, conditions = add_conditions(
            rows, variables, {name: _by_sign(came[name], left[name]) for name in came}
        )
        weights = []
        for part in added.parts:
            condition = conditions[part.variable.name]
            weight = _by_sign(part.weigh(condition, came_at), part.weigh(condition, left_at))
            weights.append(f"{weight} AS {part.name}")
        return counted.selectExpr(*id_names(entity), READ, *weights)

    return explained(compute, variables)


def _by_sign(came: str, left: str) -> str:
    """What holds for a row that comes, and what for one that leaves."""
    return came if came == left else f"CASE WHEN {SIGNED} > 0 THEN {came} ELSE {left} END"


def combine(weighed: Sequence[DataFrame], entity: Entity, parts: Collection[Part]) -> DataFrame:
    """One row for each id: what is added to each of its parts, and how many rows that came from."""
    united = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), weighed)
    return united.groupBy(*id_names(entity)).agg(
        F.sum(READ).alias(READ), *(F.expr(f"{part.combine()} AS {part.name}") for part in parts)
    )


def add_up(
    entity: Entity,
    everybody: DataFrame,
    published: DataFrame,
    deltas: Staged,
    uses: Sequence[UseParts],
) -> DataFrame:
    """The variables of everybody in a scope that are added to, with what `_state` keeps of them.

    Whoever is not published yet had no rows: one would have named it.
    """
    ids, session = id_names(entity), everybody.sparkSession
    parts = {part.name: part for added in uses for part in added.parts}
    old = published.withColumns({name: F.col(quote(column)) for name, column in rename_ids(entity).items()})
    lacking = []
    for number, added in enumerate(uses):
        old = read_parts(old, added).withColumnRenamed(LACKS, f"{LACKS}{number}")
        lacking.append(F.col(f"{LACKS}{number}"))
    names = [quote(name) for name in parts]
    lacks = reduce(lambda a, b: a | b, lacking).alias(LACKS)
    sides = [
        everybody.select(*ids),
        old.select(*ids, *names, lacks),
        deltas.read(session).select(*ids, *names),
    ]
    united = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), sides)
    rows = united.groupBy(*ids).agg(
        F.coalesce(F.max(LACKS), F.lit(False)).alias(LACKS),
        *(F.expr(f"{part.combine()} AS {name}") for name, part in parts.items()),
    )
    for added in uses:
        rows = settle(rows, added)
    # More rows were taken away than had been added: what was published is not what the rows had given.
    # One call, because Spark needs minutes for a chain of hundreds of `OR`.
    counts = [name for name, part in parts.items() if part.kind is PartKind.COUNT]
    in_doubt = f"{LACKS} OR least({', '.join((*counts, '0', '0'))}) < 0 AS {LACKS}"
    values = [column for added in uses for column in value_columns(added)]
    return rows.selectExpr(*ids, in_doubt, *values)
