"""Bands: the rows that may cross a border because `as_of` has moved."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql.types import DateType

from strandline.model.columns import quote
from strandline.model.entity import Border, Entity, Use
from strandline.model.project import Calendar

from .times import fill_time, time_of


def find_crossing(
    rows: DataFrame, entity: Entity, use: Use, before: datetime, now: datetime, calendar: Calendar
) -> DataFrame | None:
    """The rows of a use in the bands between two times. None if it has no borders."""
    borders = entity.borders_of(use)
    if not borders or before == now:
        return None
    return rows.where(
        " OR ".join(_band(rows, border, entity, use, before, now, calendar) for border in borders)
    )


def _band(
    rows: DataFrame,
    border: Border,
    entity: Entity,
    use: Use,
    before: datetime,
    now: datetime,
    calendar: Calendar,
) -> str:
    """Both ends are included: that is right for every comparison and for moves in both directions."""
    values = [f"({fill_time(border.sql, at)})" for at in (before, now)]
    variable = next(v for v in entity.variables_of(use) if border in v.borders)
    column = quote(border.column)
    compared = time_of(rows, border.column, calendar, variable) if border.of_window else column
    low, high = f"least({values[0]}, {values[1]})", f"greatest({values[0]}, {values[1]})"
    parts = [f"{compared} BETWEEN {low} AND {high}"]
    if compared != column and isinstance(rows.schema[border.column].dataType, DateType):
        # So that files are skipped. A day of a time zone is less than two days from the same day of UTC.
        parts.append(f"{column} BETWEEN date_sub(to_date({low}), 2) AND date_add(to_date({high}), 2)")
    # `least` skips NULLs. A border that appears or disappears may change every row.
    appears = f"(({values[0]}) IS NULL) != (({values[1]}) IS NULL)"
    return f"(({' AND '.join(parts)}) OR {appears})"


def pruned(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The rows that meet one of these conditions: the active section, as a read and not a table."""
    return rows.where(" OR ".join(dict.fromkeys(conditions)))
