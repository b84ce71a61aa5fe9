"""One aggregation for all variables of a use: what each of them is over the rows of each entity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from strandline.compute.keys import row_hash, user_columns
from strandline.model.columns import quote
from strandline.model.entity import Entity, Use, Variable, Window
from strandline.model.errors import WorkError
from strandline.model.project import Calendar
from strandline.sql.job_sql import fill_parameters
from strandline.sql.leaves import Leaf, cut_select
from strandline.sql.literals import spark_literal

from .ids import id_names

COUNTED = "__counted"
"""False in the one row that each entity adds, so that an entity without rows is computed too (L4)."""
_RANK, _HASH = "__rank", "__hash"


def fill_time(text: str, as_of: datetime) -> str:
    """SQL with the time of the task in place of `:as_of`."""
    return fill_parameters(text, {"as_of": as_of}, lambda _, value: spark_literal(value) or "NULL")


def with_conditions(
    rows: DataFrame, variables: Sequence[Variable], as_of: datetime, calendar: Calendar
) -> tuple[DataFrame, dict[str, str]]:
    """The rows with a column for each distinct condition, and by variable the column that it counts by."""
    columns: dict[str, str] = {}
    named: dict[str, str] = {}
    for variable in variables:
        text = condition_of(rows, variable, as_of, calendar)
        columns.setdefault(text, f"__in{len(columns)}")
        named[variable.name] = columns[text]
    made = {name: F.coalesce(F.expr(text), F.lit(False)) for text, name in columns.items()}
    return _explained(lambda: rows.withColumns(made), variables), named


def condition_of(rows: DataFrame, variable: Variable, as_of: datetime, calendar: Calendar) -> str:
    """The rows that a variable counts at a time."""
    parts = [fill_time(variable.where, as_of)] if variable.where else []
    parts += [window_condition(rows, variable.window, as_of, calendar, variable)] if variable.window else []
    return " AND ".join(f"({part})" for part in parts) or "true"


def window_condition(
    rows: DataFrame, window: Window, as_of: datetime, calendar: Calendar, variable: Variable
) -> str:
    """`[as_of - length, as_of)`. A date is its midnight in the project's time zone."""
    value, end = time_of(rows, window.column, calendar, variable), spark_literal(as_of)
    # Spark subtracts, because a start before the year 1 has no `datetime`.
    return f"{value} >= {end} - INTERVAL {window.seconds} SECONDS AND {value} < {end}"


def time_of(rows: DataFrame, column: str, calendar: Calendar, variable: Variable) -> str:
    """A column as an instant."""
    kind = rows.schema[column].dataType
    if isinstance(kind, TimestampType | TimestampNTZType):
        return quote(column)
    if isinstance(kind, DateType):
        return f"to_utc_timestamp({quote(column)}, '{calendar.timezone}')"
    raise WorkError(
        f"{variable.place}: the window of `{variable.name}` is over `{column}`, which is"
        f" {kind.simpleString()}, not a time.",
        remedy="Name a timestamp or date column, or give this one such a type where it is declared.",
        slug="window-type",
    )


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
    use: Use,
    variables: Sequence[Variable],
    conditions: Mapping[str, str],
) -> DataFrame:
    """The variables of a use for each entity of `everybody`, also for one without rows.

    `rows` have ids and conditions. All of them belong to somebody in `everybody`.
    """
    ranked = with_rank(rows, use, variables).withColumn(COUNTED, F.lit(True))
    blank = everybody.select(*id_names(entity)).withColumn(COUNTED, F.lit(False))
    united = ranked.unionByName(blank, allowMissingColumns=True)
    leaves: dict[str, str] = {}
    selects: dict[str, str] = {}
    for variable in variables:
        condition = f"{COUNTED} AND {conditions[variable.name]}"

        def place(leaf: Leaf, condition: str = condition) -> str:
            text = write_leaf(leaf, condition, lambda argument: _type_of(ranked, argument))
            return leaves.setdefault(text, f"__leaf{len(leaves)}")

        selects[variable.name] = cut_select(variable.select).fill(place)

    def compute() -> DataFrame:
        grouped = united.groupBy(*id_names(entity)).agg(
            *(F.expr(text).alias(name) for text, name in leaves.items())
        )
        values = [F.expr(text).alias(name) for name, text in selects.items()]
        return grouped.select(*id_names(entity), *values)

    return _explained(compute, variables)


def at_time(variables: Sequence[Variable], as_of: datetime) -> list[Variable]:
    """The variables with the time filled into their `select`."""
    return [replace(v, select=fill_time(v.select, as_of)) for v in variables]


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


def _explained(compute: Callable[[], DataFrame], variables: Sequence[Variable]) -> DataFrame:
    """Name the variables where Spark refuses their SQL."""
    try:
        return compute()
    except PySparkException as error:
        names = ", ".join(f"`{v.name}`" for v in variables)
        raise WorkError(
            f"{variables[0].place}: Spark refuses the SQL of {names}: {str(error).splitlines()[0]}",
            remedy="Correct `select` and `where`.",
            slug="sql-refused",
        ) from error


def default_of(variable: Variable, kind: DataType) -> Column:
    """A variable with its default in place of NULL."""
    value = F.col(quote(variable.name))
    if variable.default is None:
        return value
    literal = spark_literal(variable.default)
    return F.coalesce(value, F.expr(f"CAST({literal} AS {kind.simpleString()})"))


def with_defaults(rows: DataFrame, variables: Sequence[Variable]) -> DataFrame:
    made = {v.name: default_of(v, rows.schema[v.name].dataType) for v in variables if v.default is not None}
    return rows.withColumns(made) if made else rows


def with_expressions(rows: DataFrame, entity: Entity) -> DataFrame:
    """Also the variables that are computed from others, each with its default."""
    for variable in entity.in_order():
        made = partial(rows.withColumn, variable.name, F.expr(variable.expr))
        rows = with_defaults(_explained(made, [variable]), [variable])
    return rows
