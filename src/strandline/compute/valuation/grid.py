"""Dates as numbers, so that steps of time can be laid onto business dates and joined by equality."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACE = "__place"
"""The number of a date in the grid."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Some dates in ascending order, numbered from 0."""

    dates: tuple[date, ...]

    @classmethod
    def of(cls, dates: Iterable[date]) -> "Grid":
        return cls(tuple(sorted(set(dates))))

    def place_of(self, day: str) -> str:
        """SQL for the number of the first date of the grid that is not before a day. NULL: before all."""
        if not self.dates:
            return "0"
        first, last = self.dates[0], self.dates[-1]
        places, place = [], 0
        for offset in range((last - first).days + 1):
            while self.dates[place] < first + timedelta(days=offset):
                place += 1
            places.append(place)
        listed = f"array({', '.join(map(str, places))})"
        return (
            f"CASE WHEN {day} IS NULL OR {day} <= DATE'{first}' THEN 0"
            f" WHEN {day} > DATE'{last}' THEN {len(self.dates)}"
            f" ELSE {listed}[datediff({day}, DATE'{first}')] END"
        )

    def date_at(self, place: str) -> Column:
        """The date with a number."""
        if not self.dates:
            return F.lit(None).cast("date")
        first = self.dates[0]
        days = f"array({', '.join(str((day - first).days) for day in self.dates)})"
        return F.expr(f"date_add(DATE'{first}', {days}[{place}])")

    def spread(self, rows: DataFrame, start: str, end: str) -> DataFrame:
        """Each row once for every date of the grid from `start` (included) to `end` (excluded).

        A NULL start is before all dates, a NULL end after all.
        """
        low = self.place_of(start)
        high = f"CASE WHEN {end} IS NULL THEN {len(self.dates)} ELSE {self.place_of(end)} END"
        spread = rows.withColumns({"__low": F.expr(low), "__high": F.expr(high)}).where("__low < __high")
        places = F.expr("explode(sequence(__low, __high - 1))")
        return spread.withColumn(PLACE, places).drop("__low", "__high")
