"""A clock of a node's own: it moves in steps, and without `--as-of` it never goes back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from .border_steps import BorderStep, evaluate


class Every(StrEnum):
    """The steps in which the clock of an entity moves, in the project's time zone."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The least and the greatest value of a column in a file. None if it has no statistics of it."""

    low: datetime | date | None
    high: datetime | date | None
    rows: int = 0
    empty: bool = False
    """The column is NULL in every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedBorder:
    """A column of a dataset that is compared with a value that moves with `as_of`."""

    dataset: str
    column: str
    steps: tuple[BorderStep, ...] | None
    """None if only Spark can compute the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnClock:
    every: Every | None
    timezone: str
    borders: tuple[WatchedBorder, ...]
    """When the clock moves, only rows between the old and the new value of one of these are affected."""

    def read(self, as_of: datetime) -> datetime:
        """What the clock shows at a time: it stands still between steps."""
        if self.every is None:
            return as_of.astimezone(UTC)
        try:
            return self._round_down(as_of, self.every)
        except OverflowError:
            return as_of.astimezone(UTC)  # its day begins or ends outside of what Python can represent

    def _round_down(self, as_of: datetime, every: Every) -> datetime:
        local = as_of.astimezone(ZoneInfo(self.timezone)).replace(minute=0, second=0, microsecond=0)
        if every is Every.HOUR:
            # Not by the local hour: an hour that occurs twice begins twice.
            instant = as_of.astimezone(UTC)
            return instant - (as_of.astimezone(ZoneInfo(self.timezone)) - local)
        days = {Every.DAY: 0, Every.WEEK: local.weekday(), Every.MONTH: local.day - 1}[every]
        start = datetime.combine(local.date() - timedelta(days=days), time(), ZoneInfo(self.timezone))
        return start.astimezone(UTC)

    def value(self, border: WatchedBorder, as_of: datetime) -> datetime | date | None:
        """The value of a border at a time. None if only Spark can compute it."""
        return None if border.steps is None else evaluate(border.steps, as_of, self.timezone)

    def find_reached(
        self, border: WatchedBorder, before: datetime, now: datetime, files: Iterable[ColumnRange]
    ) -> list[ColumnRange]:
        """The files of which a row may cross a border between two times.

        May give false positives, never false negatives: a file without statistics may contain any row.
        """
        values = [self.value(border, at) for at in (before, now)]
        if None in values:
            return list(files)
        band = [_as_instant(value) for value in values if value is not None]
        # What is compared with NULL stays unknown, unless the border itself may be NULL.
        having = (file for file in files if not file.empty)
        return [file for file in having if _touches(file, min(band), max(band), values)]

    def estimate_crossing(
        self, border: WatchedBorder, before: datetime, now: datetime, files: Iterable[ColumnRange]
    ) -> float:
        """About how many rows lie between the old and the new value of a border.

        The rows of a file are taken to be spread evenly. A file without statistics counts nothing here.
        """
        values = [_as_instant(value) for at in (before, now) if (value := self.value(border, at)) is not None]
        if len(values) < len((before, now)):
            return 0.0
        return sum(_share(file, min(values), max(values), 0.0) for file in files)

    def estimate_section(self, border: WatchedBorder, now: datetime, files: Iterable[ColumnRange]) -> float:
        """About how many rows are not older than a border. A file without statistics counts whole."""
        value = self.value(border, now)
        low = None if value is None else _as_instant(value)
        return sum(file.rows if low is None else _share(file, low, None, 1.0) for file in files)


def _share(file: ColumnRange, low: datetime, high: datetime | None, unknown: float) -> float:
    """The rows of a file between two times, if they are spread evenly."""
    if file.low is None or file.high is None:
        return file.rows * unknown
    first, last = _as_instant(file.low), _as_instant(file.high)
    start, end = max(first, low), last if high is None else min(last, high)
    if end < start:
        return 0.0
    length = (last - first).total_seconds()
    return file.rows * ((end - start).total_seconds() / length if length else 1.0)


_MARGIN = timedelta(days=2)
"""A date is compared as an instant of UTC here, and of a time zone elsewhere."""
_CUT = timedelta(seconds=1)
"""Delta cuts the statistics of times to milliseconds."""


def _touches(
    file: ColumnRange, low: datetime, high: datetime, values: Sequence[datetime | date | None]
) -> bool:
    if file.low is None or file.high is None:
        return True
    exact = all(isinstance(value, datetime) for value in (file.low, file.high, *values))
    margin = _CUT if exact else _MARGIN
    # Differences, because a border may lie at either end of what Python can represent.
    return _as_instant(file.low) - high <= margin and low - _as_instant(file.high) <= margin


def _as_instant(value: datetime | date) -> datetime:
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
