"""Partitions: their names, what each holds, and when one is final."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from .project import Calendar, Partitioning, Unit

NULL = "null"
"""The partition of rows whose column is NULL."""
NULL_TEXT = "%6Eull"
"""The group of rows whose column is the text `null`."""
_FORMAT = {Unit.HOUR: "%Y-%m-%dT%H", Unit.DAY: "%Y-%m-%d", Unit.MONTH: "%Y-%m"}
_AFTER_YEAR = {Unit.HOUR: "-MM-dd'T'HH", Unit.DAY: "-MM-dd", Unit.MONTH: "-MM"}
_EVER = datetime.max.replace(tzinfo=UTC)
_JUST = timedelta(microseconds=1)
_RANGE = re.compile(r"(-?\d+)-(-?\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a partition holds: from `start` up to but not including `end`; of a `by` group, or of all. Both None: the rows without value.

    Where clocks went back over midnight a day is not one stretch of time: its span then holds some of its neighbour's instants too.
    """

    group: str
    start: int | datetime | None
    end: int | datetime | None
    timezone: str = "UTC"
    """Of the calendar that times are cut by: a date begins at midnight there."""


def encode_group(values: Iterable[str | None]) -> str:
    """The values of `by` as the first part of a partition's name."""
    return "/".join(NULL if v is None else _encode(v) for v in values)


def _encode(value: str) -> str:
    return NULL_TEXT if value == NULL else value.replace("%", "%25").replace("/", "%2F")


def decode_group(group: str) -> list[str | None]:
    """The values of `by` in a partition's name; None for NULL."""
    return [None if part == NULL else _decode(part) for part in group.split("/")]


def _decode(part: str) -> str:
    return NULL if part == NULL_TEXT else part.replace("%2F", "/").replace("%25", "%")


def format_after_year(unit: Unit) -> str:
    """Spark's pattern for what follows the year in a partition's name. Its `yyyy` would give year 0 and year 1 one name."""
    return _AFTER_YEAR[unit]


def name_number(partitioning: Partitioning, value: int) -> str:
    assert partitioning.size is not None
    start = value - value % partitioning.size
    return f"{start}-{start + partitioning.size}"


def find_span(partitioning: Partitioning, calendar: Calendar, name: str) -> Span | None:
    """The span of a partition by its name; times are UTC instants. None for a name that no partition has."""
    group, _, own = name.rpartition("/") if partitioning.by else ("", "", name)
    if partitioning.by and (not name.count("/") or group.count("/") != len(partitioning.by) - 1):
        return None
    if own == NULL:
        return Span(group=group, start=None, end=None)
    if partitioning.unit is None:
        found = _RANGE.fullmatch(own)
        if found is None or name_number(partitioning, int(found[1])) != own:
            return None
        return Span(group=group, start=int(found[1]), end=int(found[2]))
    try:
        local = datetime.strptime(own, _FORMAT[partitioning.unit])  # noqa: DTZ007 the local time: its zone follows
    except ValueError:
        return None
    if f"{local.year:04}{local.strftime(_FORMAT[partitioning.unit].removeprefix('%Y'))}" != own:
        return None
    zone = ZoneInfo(calendar.timezone)
    return Span(
        group=group,
        start=_instant(local, zone),
        end=_end(local, partitioning.unit, zone),
        timezone=calendar.timezone,
    )


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    """As UTC; beyond what a datetime holds, the first or the last it does: people write 9999-12-31 for never."""
    try:
        return local.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return _EVER if local.year > 5000 else datetime.min.replace(tzinfo=UTC)


def _following(local: datetime, unit: Unit) -> datetime | None:
    """Where the next partition begins; None after the last."""
    try:
        match unit:
            case Unit.HOUR:
                return local + timedelta(hours=1)
            case Unit.DAY:
                return local + timedelta(days=1)
            case Unit.MONTH:
                return local.replace(year=local.year + local.month // 12, month=local.month % 12 + 1)
    except (OverflowError, ValueError):
        return None


def _end(local: datetime, unit: Unit, zone: ZoneInfo) -> datetime:
    following = _following(local, unit)
    if following is None:
        return _EVER
    first = _instant(following, zone)
    second = _instant(following.replace(fold=1), zone)
    # Clocks that went back over midnight bring the last hour of the day once more.
    comes_again = second > first and (second - _JUST).astimezone(zone).replace(tzinfo=None) < following
    return second if comes_again else first


def is_final(
    partitioning: Partitioning, span: Span, tips: Mapping[str, int | Decimal | date | datetime]
) -> bool:
    """Whether everything in a partition lies `final_after` behind the newest value of its group."""
    if partitioning.final_after is None or span.end is None:
        return True
    tip = tips.get(span.group)
    if tip is None:
        return False
    if isinstance(span.end, datetime):
        if not isinstance(tip, date):
            return False
        newest = (
            _aware(tip)
            if isinstance(tip, datetime)
            else _instant(datetime.combine(tip, time()), ZoneInfo(span.timezone))
        )
        return newest - span.end >= timedelta(seconds=partitioning.final_after)
    return isinstance(tip, int | Decimal) and span.end - 1 + partitioning.final_after <= tip


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def cover(spans: Iterable[Span]) -> tuple[int | datetime, int | datetime] | None:
    """The range from the first start to the last end; None when it is open (rows without value, the end of time) or there is nothing."""
    listed = list(spans)
    if not listed or any(s.start is None or s.end is None or s.end == _EVER for s in listed):
        return None
    starts = [s.start for s in listed if s.start is not None]
    ends = [s.end for s in listed if s.end is not None]
    return min(starts), max(ends)


def find_edges(
    partitioning: Partitioning, span: Span, name: str, kind: str
) -> tuple[int | date | None, int | date | None]:
    """From where up to where a column of some type has a partition's values; None where nothing lies beyond, up to the end of time.

    Dates have no time zone: a day that the calendar's clocks left out is a day among them.
    """
    if kind != "date" or partitioning.unit is None or span.start is None:
        return span.start, None if span.end == _EVER else span.end
    first = datetime.strptime(name.rpartition("/")[2], _FORMAT[partitioning.unit])  # noqa: DTZ007 a day is a day everywhere
    following = _following(first, Unit.MONTH if partitioning.unit is Unit.MONTH else Unit.DAY)
    return first.date(), following.date() if following else None
