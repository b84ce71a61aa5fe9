"""Whether a partition may hold rows that a filter means, or that lie in another partition. Never a wrong no; a yes may be too careful."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from strandline.model.filters import Comparison, Filter, Operator, Scalar
from strandline.model.partitions import Span, decode_group

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def may_hold(filter: Filter, columns: tuple[str, ...], span: Span | None, zone: ZoneInfo) -> bool:
    """For a checked filter; `columns` are what its dataset calls the partition's groups and, at the end, the partition's column."""
    if span is None:
        return True
    *groups, own = columns
    name_by_group = dict(zip(groups, decode_group(span.group), strict=True)) if groups else {}
    for said in filter.comparisons:
        if said.column == own and not _in_span(said, span, zone):
            return False
        if said.column in name_by_group and not _in_group(said, name_by_group[said.column]):
            return False
    return True


def may_share(one: Span | None, other: Span | None, zone: ZoneInfo) -> bool:
    """Whether two spans of one column share a value, whatever their groups."""
    if one is None or other is None:
        return True
    if one.start is None or other.start is None:
        return one.start is other.start  # both hold the rows without value, or only one does
    starts, ends = (
        (_on_axis(one.start, zone), _on_axis(other.start, zone)),
        (_on_axis(one.end, zone), _on_axis(other.end, zone)),
    )
    return _before(starts[0], ends[1]) and _before(starts[1], ends[0])


def _in_span(said: Comparison, span: Span, zone: ZoneInfo) -> bool:
    if said.operator is Operator.IS_NULL:
        return (span.start is None) is said.value
    if span.start is None:
        return False  # no comparison is true of NULL
    start, end = _on_axis(span.start, zone), _on_axis(span.end, zone)
    values = [_on_axis(value, zone) for value in said.values]
    match said.operator:
        case Operator.EQ | Operator.IN:
            return any(_before(value, end) and not _before(value, start, unknown=False) for value in values)
        case Operator.GT:
            return _before(values[0], end - 1 if end is not None else None)
        case Operator.GTE:
            return _before(values[0], end)
        case Operator.LT:
            return _before(start, values[0])
        case Operator.LTE:
            return not _before(values[0], start, unknown=False)
        case _:
            return True


def _in_group(said: Comparison, name: str | None) -> bool:
    if said.operator is Operator.IS_NULL:
        return (name is None) is said.value
    if said.operator not in (Operator.EQ, Operator.IN) or not all(
        type(value) in (int, str) for value in said.values
    ):
        return True  # how Spark writes other types as text is not known here
    return name in {str(value) for value in said.values}


def _before(low: int | None, high: int | None, *, unknown: bool = True) -> bool:
    return unknown if low is None or high is None else low < high


def _on_axis(value: Scalar | None, zone: ZoneInfo) -> int | None:
    """A value as a whole number, so that it compares with all others of its column; an instant in microseconds. None: it cannot be told."""
    match value:
        case bool() | None | str() | float():
            return None
        case datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            return _on_axis(datetime.combine(value, time(), zone), zone)
        case Decimal():
            return int(value) if value == value.to_integral_value() else None
        case _:
            return value
