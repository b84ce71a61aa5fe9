"""The value of a border at a time, without Spark: the steps that lead from `as_of` to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """So many seconds later, or earlier."""

    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """The start of the year, month, week, day or hour in UTC, as `date_trunc` gives it."""

    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToDate:
    """The date of an instant, in UTC or in the project's time zone."""

    local: bool


BorderStep = Shift | Truncate | ToDate


def evaluate(steps: Sequence[BorderStep], as_of: datetime, timezone: str) -> datetime | date | None:
    """The value of a border. None if it lies outside of what Python can represent."""
    value: datetime | date = as_of.astimezone(UTC)
    try:
        for step in steps:
            value = _take(step, value, timezone)
    except (OverflowError, ValueError):
        return None
    return value


def _take(step: BorderStep, value: datetime | date, timezone: str) -> datetime | date:
    if not isinstance(value, datetime):
        if isinstance(step, ToDate):
            return value
        raise ValueError("only an instant can be shifted or truncated")
    match step:
        case Shift(seconds=seconds):
            return value + timedelta(seconds=seconds)
        case Truncate(unit=unit):
            return _truncate(value, unit)
        case ToDate(local=local):
            return (value.astimezone(ZoneInfo(timezone)) if local else value).date()


def _truncate(value: datetime, unit: str) -> datetime:
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "YEAR":
            return midnight.replace(month=1, day=1)
        case "MONTH":
            return midnight.replace(day=1)
        case "WEEK":
            return midnight - timedelta(days=midnight.weekday())
        case "DAY":
            return midnight
        case "HOUR":
            return value.replace(minute=0, second=0, microsecond=0)
        case _:
            raise ValueError(f"{unit} is not a unit of time")


TRUNCATED = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR")
