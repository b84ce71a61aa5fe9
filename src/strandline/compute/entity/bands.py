"""The rows in bands, which may cross a border because `as_of` has moved, and those inside of windows."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame

from strandline.model.columns import quote
from strandline.model.entity import Border, Entity, Use, Variable
from strandline.model.project import Calendar

from .times import explained, fill_time, limit_of, near_dates, time_of


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
    near = near_dates(rows, border.column, low, high) if compared != column else []
    parts = [f"{compared} BETWEEN {low} AND {high}", *near]
    # `least` skips NULLs. A border that appears or disappears may change every row.
    appears = f"(({values[0]}) IS NULL) != (({values[1]}) IS NULL)"
    return f"(({' AND '.join(parts)}) OR {appears})"


def find_section(
    rows: DataFrame, variables: Sequence[Variable], as_of: datetime, calendar: Calendar
) -> DataFrame:
    """The active section: at least the rows that a variable counts, as a read and not a table.

    Its conditions are over bare columns, so that files outside of all windows are skipped.
    """
    limits = dict.fromkeys(limit_of(rows, v, as_of, calendar) for v in variables)
    if "true" in limits:
        return rows
    return explained(lambda: rows.where(" OR ".join(limits)), variables)
