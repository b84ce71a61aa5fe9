"""One aggregation for all variables of a use: what each of them is over the rows of each entity."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType

from strandline.compute.keys import row_hash, user_columns
from strandline.model.columns import quote
from strandline.model.entity import Entity, Use, Variable
from strandline.model.errors import WorkError
from strandline.model.typed_values import EXPECTED, find_stored_type, fit_value
from strandline.sql.leaves import Leaf, cut_select
from strandline.sql.literals import spark_literal

from .ids import id_names
from .parts import UseParts
from .state import keep
from .times import explained, fill_time

COUNTED = "__counted"
"""False in the one row that each entity adds, so that an entity without rows is computed too (L4)."""
_COMPARED_AS = {"float": "double", "timestamp_ntz": "timestamp"}
_RANK, _HASH = "__rank", "__hash"


def with_rank(rows: DataFrame, use: Use, variables: Sequence[Variable]) -> DataFrame:
    """The rows with what decides between several of them: the rank of L3, and the row's hash."""
    if not any(variable.reads_row for variable in variables):
        return rows
    hashed = rows.withColumn(_HASH, row_hash(c for c in user_columns(rows.columns) if not c.startswith("__")))
    # The position of L3 comes after the hash. It could only decide between rows that are equal throughout.
    order = [F.col(quote(c)).alias(f"o{i}") for i, c in enumerate(use.order_by) if c in rows.columns]
    return hashed.withColumn(_RANK, F.struct(*order, F.col(_HASH).alias("h")))


def aggregate(
    rows: DataFrame,
    everybody: DataFrame,
    entity: Entity,
    variables: Sequence[Variable],
    conditions: Mapping[str, str],
    added: UseParts,
    as_of: datetime,
) -> DataFrame:
    """The variables of a use for each entity of `everybody`, also for one without rows.

    `rows` have ids and conditions. All of them belong to somebody in `everybody`. Variables that can be added
    to (`added`) come with what `_state` keeps of them.
    """
    ranked = with_rank(rows, added.use, variables).withColumn(COUNTED, F.lit(True))
    blank = everybody.select(*id_names(entity)).withColumn(COUNTED, F.lit(False))
    united = ranked.unionByName(blank, allowMissingColumns=True)
    conditions = {name: f"{COUNTED} AND {condition}" for name, condition in conditions.items()}
    parts = {part.name: part.compute(conditions[part.variable.name], as_of) for part in added.parts}
    leaves: dict[str, str] = {}
    selects: dict[str, str] = {}
    for variable in variables:
        if added.of(variable):
            continue

        def place(leaf: Leaf, condition: str = conditions[variable.name]) -> str:
            text = write_leaf(leaf, condition, lambda argument: _type_of(ranked, argument))
            return leaves.setdefault(text, f"__leaf{len(leaves)}")

        selects[variable.name] = cut_select(fill_time(variable.select, as_of)).fill(place)

    def compute() -> DataFrame:
        aggregates = [*((text, name) for text, name in leaves.items()), *((t, n) for n, t in parts.items())]
        grouped = united.groupBy(*id_names(entity)).agg(
            *(F.expr(f"{text} AS {name}") for text, name in aggregates)
        )
        settled = settle(grouped, added)
        values = [named(text, name) for name, text in selects.items()]
        return settled.selectExpr(*id_names(entity), *values, *value_columns(added))

    return explained(compute, variables)


def settle(grouped: DataFrame, added: UseParts) -> DataFrame:
    """Rows with each part as it is kept."""
    parts = {part.name: f"{part.settle(part.name)} AS {part.name}" for part in added.parts}
    if not parts:
        return grouped
    return grouped.selectExpr(*(parts.get(column, quote(column)) for column in grouped.columns))


def value_columns(added: UseParts) -> list[str]:
    """The variables that are made of parts, and what `_state` keeps of them. In SQL, with their names."""
    names = dict.fromkeys(leaf.variable.name for leaf in added.leaves)
    values = [named(added.fill(added.get(name)), name) for name in names]
    return [*values, *(keep(leaf) for leaf in added.leaves if leaf.kept)]


def named(text: str, name: str) -> str:
    """SQL with a name, on a line of its own: a user's SQL may end with a comment."""
    return f"{text}\n AS {quote(name)}"


def write_leaf(leaf: Leaf, condition: str, type_of: Callable[[str], DataType]) -> str:
    """An aggregate as Spark computes it, over the rows that meet a condition."""
    conditions = [condition, *([f"({leaf.where})"] if leaf.where else [])]
    arguments = leaf.arguments
    match leaf.function:
        case "latest" | "earliest":
            return _write_ranked(leaf, " AND ".join(conditions))
        case "max_by" | "min_by" if len(arguments) == 2:
            value, order = arguments
            conditions.append(f"({order}) IS NOT NULL")
            return f"{leaf.function}({value}, struct({order} AS o, {_HASH} AS h)){_filter(conditions)}"
        case "avg" | "mean" if not leaf.distinct and isinstance(type_of(arguments[0]), IntegralType):
            only = _filter(conditions)
            total = f"CAST(sum(CAST({arguments[0]} AS DECIMAL(38,0))){only} AS DOUBLE)"
            return f"({total} / nullif(count({arguments[0]}){only}, 0))"
    distinct = "DISTINCT " if leaf.distinct else ""
    within = f" {leaf.within}" if leaf.within else ""
    return f"{leaf.function}({distinct}{', '.join(arguments)}){within}{_filter(conditions)}"


def _write_ranked(leaf: Leaf, condition: str) -> str:
    newest = leaf.function == "latest"
    if len(leaf.arguments) == 1:
        return f"{'max_by' if newest else 'min_by'}({leaf.arguments[0]}, {_RANK}) FILTER (WHERE {condition})"
    value, number = leaf.arguments
    listed = f"collect_list(struct({_RANK} AS r, {value} AS v)) FILTER (WHERE {condition})"
    ordered = f"sort_array({listed}, {'false' if newest else 'true'})"
    return f"transform(slice({ordered}, 1, {number}), e -> e.v)"


def _filter(conditions: Sequence[str]) -> str:
    return f" FILTER (WHERE {' AND '.join(conditions)})"


def _type_of(rows: DataFrame, expression: str) -> DataType:
    return rows.select(F.expr(expression)).schema[0].dataType


def default_of(variable: Variable, kind: DataType) -> Column:
    """A variable with its default in place of NULL."""
    value = F.col(quote(variable.name))
    if variable.default is None:
        return value
    require_default(variable, kind.simpleString())
    literal = spark_literal(variable.default)
    return F.coalesce(value, F.expr(f"CAST({literal} AS {kind.simpleString()})"))


def require_default(variable: Variable, type_: str) -> None:
    """Refuse a default that is not a value of its variable: a cast would change it, or fail without a name.

    Spark decides about types of which we do not know the values.
    """
    kind = find_stored_type(_COMPARED_AS.get(type_, type_))
    if kind is None or variable.default is None:
        return
    try:
        fit_value(variable.default, kind)
    except (ValueError, ArithmeticError):
        raise WorkError(
            f"{variable.place}: the default {variable.default!r} of `{variable.name}` is not a `{type_}`.",
            remedy=f"Write {EXPECTED[kind.name]}.",
            slug="default-does-not-fit",
        ) from None


def with_defaults(rows: DataFrame, variables: Sequence[Variable]) -> DataFrame:
    def fill() -> DataFrame:
        types = {v.name: rows.schema[v.name].dataType for v in variables if v.default is not None}
        return rows.withColumns({v.name: default_of(v, types[v.name]) for v in variables if v.name in types})

    return explained(fill, variables) if any(v.default is not None for v in variables) else rows


def with_expressions(rows: DataFrame, entity: Entity) -> DataFrame:
    """Also the variables that are computed from others, each with its default."""
    for variable in entity.in_order():
        made = partial(rows.withColumn, variable.name, F.expr(variable.expr))
        rows = with_defaults(explained(made, [variable]), [variable])
    return rows
