"""Partitions: their names, what each contains, and when one is final."""

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
    """What a partition contains: values from `start` to before `end`, of one `by` group or of all.

    Both are None for the rows without a value. If clocks were set back over midnight, a day is not one
    stretch of time: its span then also contains some instants of its neighbour.
    """

    group: str
    start: int | datetime | None
    end: int | datetime | None
    timezone: str = "UTC"
    """The time zone of the calendar: a date begins at midnight there."""


def encode_group(values: Iterable[str | None]) -> str:
    """The values of `by` as the first part of a partition's name."""
    return "/".join(NULL if v is None else _encode(v) for v in values)


def _encode(value: str) -> str:
    return NULL_TEXT if value == NULL else value.replace("%", "%25").replace("/", "%2F")


def decode_group(group: str) -> list[str | None]:
    """The values of `by` in a partition's name. None for NULL."""
    return [None if part == NULL else _decode(part) for part in group.split("/")]


def _decode(part: str) -> str:
    return NULL if part == NULL_TEXT else part.replace("%2F", "/").replace("%25", "%")


def format_after_year(unit: Unit) -> str:
    """Spark's pattern for what follows the year in a partition's name.

    Its `yyyy` would give year 0 and year 1 the same name.
    """
    return _AFTER_YEAR[unit]


def name_number(partitioning: Partitioning, value: int) -> str:
    assert partitioning.size is not None
    start = value - value % partitioning.size
    return f"{start}-{start + partitioning.size}"


def find_span(partitioning: Partitioning, calendar: Calendar, name: str) -> Span | None:
    """The span of the partition with this name. Times are UTC instants.

    None if no partition can have the name.
    """
    group, _, own = name.rpartition("/") if partitioning.by else ("", "", name)
    if partitioning.by and (not name.count("/") or group.count("/") != len(partitioning.by) - 1):
        return None
    if own == NULL:
        return Span(group=group, start=None, end=None)
    if partitioning.unit is None:
        edges = _RANGE.fullmatch(own)
        if edges is None or name_number(partitioning, int(edges[1])) != own:
            return None
        return Span(group=group, start=int(edges[1]), end=int(edges[2]))
    try:
        local = datetime.strptime(own, _FORMAT[partitioning.unit])  # noqa: DTZ007 its zone is added below
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
    """The instant in UTC.

    Beyond the range of datetime, its first or last one: people write 9999-12-31 for never.
    """
    try:
        return local.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return _EVER if local.year > 5000 else datetime.min.replace(tzinfo=UTC)


def _following(local: datetime, unit: Unit) -> datetime | None:
    """The start of the next partition. None after the last."""
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
    # If clocks are set back over midnight, the last hour of the day occurs twice.
    occurs_twice = second > first and (second - _JUST).astimezone(zone).replace(tzinfo=None) < following
    return second if occurs_twice else first


def is_final(
    partitioning: Partitioning, span: Span, tips: Mapping[str, int | Decimal | date | datetime]
) -> bool:
    """Whether everything in a partition is at least `final_after` behind the newest value of its group."""
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
    """The range from the first start to the last end.

    None if there are no spans, or if the range is open: rows without a value, or the end of time.
    """
    listed = list(spans)
    if not listed or any(s.start is None or s.end is None or s.end == _EVER for s in listed):
        return None
    starts = [s.start for s in listed if s.start is not None]
    ends = [s.end for s in listed if s.end is not None]
    return min(starts), max(ends)


def find_edges(
    partitioning: Partitioning, span: Span, name: str, kind: str
) -> tuple[int | date | None, int | date | None]:
    """The first value of a column of type `kind` in a partition, and the end, which is not included.

    The end is None if there is nothing beyond it, up to the end of time. Dates have no time zone: a day that
    the calendar's clocks skipped is a day among dates.
    """
    if kind != "date" or partitioning.unit is None or span.start is None:
        return span.start, None if span.end == _EVER else span.end
    text = name.rpartition("/")[2]
    first = datetime.strptime(text, _FORMAT[partitioning.unit])  # noqa: DTZ007 a date has no time zone
    following = _following(first, Unit.MONTH if partitioning.unit is Unit.MONTH else Unit.DAY)
    return first.date(), following.date() if following else None
