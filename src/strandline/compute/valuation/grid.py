"""Dates as numbers, so that steps of time can be laid onto business dates and joined by equality."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACE = "__place"
"""The number of a date in the grid."""
LOW, HIGH = "__low", "__high"
"""The number of the first date of a range, and of the first date after it."""

_LONGEST_GAP = timedelta(days=366)


def date_literal(day: date | None) -> Column:
    """A date of any year. `F.lit` fails before the year 1000, and moves 5 to 14 October 1582 by ten days."""
    return F.expr(f"DATE'{day}'") if day else F.lit(None).cast("date")


def following(day: date) -> date | None:
    """The next day. None after the last day that there is."""
    return day + timedelta(days=1) if day < date.max else None


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
        cases, place = [], 0
        for run in self._runs():
            cases.append(f"WHEN {day} <= DATE'{run[0]}' THEN {place}")
            places = []
            for one, following in pairwise(run):
                place += 1
                places += [place] * (following - one).days
            if places:
                listed = list_numbers(places)
                offset = f"datediff({day}, DATE'{run[0]}') - 1"
                cases.append(f"WHEN {day} <= DATE'{run[-1]}' THEN {listed}[{offset}]")
            place += 1
        return f"CASE WHEN {day} IS NULL THEN 0 {' '.join(cases)} ELSE {len(self.dates)} END"

    def _runs(self) -> list[list[date]]:
        """The dates, cut where a year or more lies between two: what is listed has a number for every day."""
        runs = [[self.dates[0]]]
        for one, following in pairwise(self.dates):
            if following - one > _LONGEST_GAP:
                runs.append([])
            runs[-1].append(following)
        return runs

    def date_at(self, place: str) -> Column:
        """The date with a number."""
        return F.expr(self.spell_date(place))

    def spell_date(self, place: str) -> str:
        """The same in SQL."""
        if not self.dates:
            return "CAST(NULL AS DATE)"
        first = self.dates[0]
        days = list_numbers([(day - first).days for day in self.dates])
        return f"date_add(DATE'{first}', {days}[{place}])"

    def count(self, start: str, end: str) -> Column:
        """The number of dates of the grid from `start` (included) to `end` (excluded)."""
        return F.greatest(F.expr(self._end(end)) - F.expr(self.place_of(start)), F.lit(0))

    def locate(self, rows: DataFrame, start: str, end: str) -> DataFrame:
        """Rows with the numbers of their first date and of the first after the last, if they have any.

        A NULL start is before all dates, a NULL end after all.
        """
        places = {LOW: F.expr(self.place_of(start)), HIGH: F.expr(self._end(end))}
        return rows.withColumns(places).where(f"{LOW} < {HIGH}")

    def _end(self, end: str) -> str:
        return f"CASE WHEN {end} IS NULL THEN {len(self.dates)} ELSE {self.place_of(end)} END"

    def spread(self, rows: DataFrame, start: str, end: str) -> DataFrame:
        """Each row once for every date of the grid from `start` (included) to `end` (excluded)."""
        return spread_located(self.locate(rows, start, end))


def list_numbers(numbers: Iterable[int]) -> str:
    """SQL for an array of numbers.

    It is written as one text, which Spark converts once. It would examine an array of thousands of literals
    again with every operation on a data frame.
    """
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<INT>)"


def spread_located(rows: DataFrame) -> DataFrame:
    """Each row once for every date in its range."""
    return rows.withColumn(PLACE, F.expr(f"explode(sequence({LOW}, {HIGH} - 1))")).drop(LOW, HIGH)
