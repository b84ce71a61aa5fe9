"""SQL at a time, and which rows of a use a variable counts then."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from strandline.model.columns import quote
from strandline.model.entity import Variable, Window
from strandline.model.errors import WorkError
from strandline.model.project import Calendar
from strandline.sql.job_sql import fill_parameters
from strandline.sql.literals import spark_literal


def fill_time(text: str, as_of: datetime) -> str:
    """SQL with the time of the task in place of `:as_of`."""
    if ":as_of" not in text:  # hundreds of texts are asked for several times each
        return text
    return fill_parameters(text, {"as_of": as_of}, lambda _, value: spark_literal(value) or "NULL")


def with_conditions(
    rows: DataFrame, variables: Sequence[Variable], as_of: datetime, calendar: Calendar
) -> tuple[DataFrame, dict[str, str]]:
    """The rows with a column for each distinct condition, and by variable the column that it counts by."""
    return add_conditions(rows, variables, conditions_at(rows, variables, as_of, calendar))


def conditions_at(
    rows: DataFrame, variables: Sequence[Variable], as_of: datetime, calendar: Calendar
) -> dict[str, str]:
    """By variable: which rows it counts at a time."""
    return {v.name: condition_of(rows, v, as_of, calendar) for v in variables}


def add_conditions(
    rows: DataFrame, variables: Sequence[Variable], conditions: Mapping[str, str]
) -> tuple[DataFrame, dict[str, str]]:
    columns = {text: f"__in{place}" for place, text in enumerate(dict.fromkeys(conditions.values()))}
    made = {name: F.expr(f"coalesce({text}, false)") for text, name in columns.items()}
    named = {variable: columns[text] for variable, text in conditions.items()}
    return explained(lambda: rows.withColumns(made), variables), named


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


def limit_of(rows: DataFrame, variable: Variable, as_of: datetime, calendar: Calendar) -> str:
    """What the rows of a variable have in common: its window, or else its own condition."""
    window = variable.window
    if window is None:
        return f"({fill_time(variable.where, as_of)})" if variable.where else "true"
    inside = window_condition(rows, window, as_of, calendar, variable)
    now = spark_literal(as_of)
    near = near_dates(rows, window.column, f"{now} - INTERVAL {window.seconds} SECONDS", str(now))
    return f"({' AND '.join([inside, *near])})"


def near_dates(rows: DataFrame, column: str, low: str, high: str) -> list[str]:
    """Dates that contain all those between two times, so that files are skipped.

    A day of a time zone is less than two days from the same day of UTC.
    """
    if not isinstance(rows.schema[column].dataType, DateType):
        return []
    return [f"{quote(column)} BETWEEN date_sub(to_date({low}), 2) AND date_add(to_date({high}), 2)"]


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


def explained(compute: Callable[[], DataFrame], variables: Sequence[Variable]) -> DataFrame:
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
