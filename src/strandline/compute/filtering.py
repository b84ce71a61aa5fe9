"""A checked condition -> the Column that Spark filters by, with exact literals and quoted names."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.model.columns import quote
from strandline.model.condition_checks import check_filter
from strandline.model.conditions import AllOf, AnyOf, Comparison, Condition, Negation, Operator, Scalar
from strandline.sql.literals import spark_literal


def condition_column(condition: Condition, rename: Mapping[str, str] | None = None) -> Column:
    """True, false or NULL, as in SQL. `rename` maps a column of the condition to its name in the rows."""
    match condition:
        case Comparison(column=column):
            return _compare(F.col(quote((rename or {}).get(column, column))), condition)
        case Negation(part=part):
            return ~condition_column(part, rename)
        case AllOf(parts=parts):
            return _join(and_, [condition_column(part, rename) for part in parts]) if parts else F.lit(True)
        case AnyOf(parts=parts):
            return _join(or_, [condition_column(part, rename) for part in parts]) if parts else F.lit(False)


def typed_filter(filter: AllOf, rows: DataFrame) -> AllOf:
    """The filter with values of the types of these rows."""
    return check_filter(filter, {f.name: f.dataType.simpleString() for f in rows.schema})


def any_of(conditions: Sequence[Condition], rename: Mapping[str, str] | None = None) -> Column:
    """True for the rows of any of them. Repeated conditions count once."""
    return condition_column(AnyOf(parts=tuple(dict.fromkeys(conditions))), rename)


def _join(join: Callable[[Column, Column], Column], columns: list[Column]) -> Column:
    """A thousand columns still make a shallow tree, because Spark walks it by recursion."""
    while len(columns) > 1:
        columns = [reduce(join, columns[i : i + 2]) for i in range(0, len(columns), 2)]
    return columns[0]


def _compare(column: Column, comparison: Comparison) -> Column:
    values = [F.expr(spark_literal(_without_sign(value)) or "NULL") for value in comparison.values]
    if any(isinstance(value, float) and value == 0 for value in comparison.values):
        # Readers of Parquet skip a file with 0.0 when -0.0 is looked for. They are not handed a sum.
        column = column + F.lit(0.0)
    match comparison.operator:
        case Operator.EQ:
            return column == values[0]
        case Operator.NEQ:
            return column != values[0]
        case Operator.GT:
            return column > values[0]
        case Operator.GTE:
            return column >= values[0]
        case Operator.LT:
            return column < values[0]
        case Operator.LTE:
            return column <= values[0]
        case Operator.IN:
            return column.isin(values) if values else F.lit(False)
        case Operator.NIN:
            return ~column.isin(values) if values else F.lit(True)
        case Operator.IS_NULL:
            return column.isNull() if comparison.value else column.isNotNull()


def _without_sign(value: Scalar) -> Scalar:
    """0.0 for -0.0: a long list becomes a set of bits, in which they differ."""
    return 0.0 if isinstance(value, float) and value == 0 else value
