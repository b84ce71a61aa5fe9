"""A checked filter -> the Column that Spark filters by, with exact literals and quoted names."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.model.columns import quote
from strandline.model.filters import Comparison, Filter, Operator, check_filter
from strandline.sql.literals import spark_literal


def filter_column(filter: Filter, rename: Mapping[str, str] | None = None) -> Column:
    """True for the rows of the filter; false or NULL for others, as in SQL.

    `rename` maps a column of the filter to its name in the rows.
    """
    names = rename or {}
    conditions = [
        _compare(F.col(quote(names.get(comparison.column, comparison.column))), comparison)
        for comparison in filter.comparisons
    ]
    return reduce(and_, conditions) if conditions else F.lit(True)


def typed_filter(filter: Filter, rows: DataFrame) -> Filter:
    """The filter with values of the types of these rows."""
    return check_filter(filter, {f.name: f.dataType.simpleString() for f in rows.schema})


def any_of(filters: Sequence[Filter], rename: Mapping[str, str] | None = None) -> Column:
    """True for the rows of any of them. Repeated filters count once.

    A thousand filters still make a shallow tree, because Spark walks it by recursion.
    """
    columns = [filter_column(f, rename) for f in dict.fromkeys(filters)]
    while len(columns) > 1:
        pairs = [columns[i : i + 2] for i in range(0, len(columns), 2)]
        columns = [reduce(or_, pair) for pair in pairs]
    return columns[0] if columns else F.lit(False)


def _compare(column: Column, comparison: Comparison) -> Column:
    values = [F.expr(spark_literal(value) or "NULL") for value in comparison.values]
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
