"""Where the rows that a task is about lie in a table of a timeline.

It is known from the keys and dates of the task, and may contain more rows than those. Files, and pages in
them, that lie elsewhere are skipped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from strandline.model.columns import quote
from strandline.model.timeline import DATE
from strandline.sql.literals import datafusion_literal, datafusion_name, spark_literal

Bounds = tuple[date | None, date | None]
"""The first date, and the first date after the last. None has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Few values of a column that contain those of all affected rows."""

    column: str
    values: tuple[str | int, ...]
    """There is at least one."""

    def spell(self, prefix: str = "") -> str:
        """As a condition of Spark's SQL."""
        return f"{prefix}{quote(self.column)} IN ({_join(self.values, spark_literal)})"

    def ask(self) -> str:
        """As a condition of DataFusion's SQL."""
        return f"{datafusion_name(self.column)} IN ({_join(self.values, datafusion_literal)})"


def _join(values: Sequence[object], spell: Callable[[object], str | None]) -> str:
    literals = [spell(value) for value in values]
    assert None not in literals, "texts and whole numbers have literals"
    return ", ".join(map(str, literals))


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Ranges of dates, and values of columns of the key, that contain all affected rows."""

    dates: tuple[Bounds, ...] = ((None, None),)
    """Few ranges, ascending. Without any, no row is affected."""
    among: tuple[Among, ...] = ()

    def spell(self) -> str:
        """As a condition of Spark's SQL. It is false where no row is affected."""
        return self._combine(quote(DATE), "DATE'{}'", [among.spell() for among in self.among])

    def ask(self) -> str:
        """As a condition of DataFusion's SQL."""
        return self._combine(datafusion_name(DATE), "DATE '{}'", [among.ask() for among in self.among])

    def _combine(self, column: str, literal: str, among: Sequence[str]) -> str:
        ranges = [_between(column, literal, bounds) for bounds in self.dates]
        return " AND ".join([f"({' OR '.join(ranges) or 'false'})", *among])

    def may_contain(self, first: date | None, last: date | None) -> bool:
        """Whether a file with dates from first to last may have affected rows. None is unknown."""
        return any(
            (low is None or last is None or last >= low) and (high is None or first is None or first < high)
            for low, high in self.dates
        )


ANYWHERE = Near()


def _between(column: str, literal: str, bounds: Bounds) -> str:
    low, high = bounds
    sides = [f"{column} >= {literal.format(low)}"] if low else []
    sides += [f"{column} < {literal.format(high)}"] if high else []
    return " AND ".join(sides) or "true"
