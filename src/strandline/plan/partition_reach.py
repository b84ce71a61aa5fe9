"""Whether a partition may contain rows that match a filter, or rows of another partition.

May give false positives, never false negatives.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from strandline.model.conditions import AllOf, AnyOf, Comparison, Condition, Negation, Operator, Scalar
from strandline.model.partitions import Span, decode_group

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def may_hold(condition: Condition, columns: tuple[str, ...], span: Span | None, zone: ZoneInfo) -> bool:
    """For a checked condition.

    `columns` are the dataset's names of the partition's groups and, last, its column.
    """
    if span is None:
        return True
    match condition:
        case AllOf(parts=parts):
            return all(may_hold(part, columns, span, zone) for part in parts)
        case AnyOf(parts=parts):
            return any(may_hold(part, columns, span, zone) for part in parts)
        case Negation():
            return True
    *groups, own = columns
    name_by_group = dict(zip(groups, decode_group(span.group), strict=True)) if groups else {}
    if condition.column == own:
        return _in_span(condition, span, zone)
    return condition.column not in name_by_group or _in_group(condition, name_by_group[condition.column])


def may_share(one: Span | None, other: Span | None, zone: ZoneInfo) -> bool:
    """Whether two spans of one column share a value, whatever their groups."""
    if one is None or other is None:
        return True
    if one.start is None or other.start is None:
        return one.start is other.start  # both contain the rows without a value, or only one does
    starts, ends = (
        (_on_axis(one.start, zone), _on_axis(other.start, zone)),
        (_on_axis(one.end, zone), _on_axis(other.end, zone)),
    )
    return _before(starts[0], ends[1]) and _before(starts[1], ends[0])


def _in_span(comparison: Comparison, span: Span, zone: ZoneInfo) -> bool:
    if comparison.operator is Operator.IS_NULL:
        return (span.start is None) is comparison.value
    if span.start is None:
        return False  # no comparison is true of NULL
    start, end = _on_axis(span.start, zone), _on_axis(span.end, zone)
    values = [_on_axis(value, zone) for value in comparison.values]
    match comparison.operator:
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


def _in_group(comparison: Comparison, name: str | None) -> bool:
    if comparison.operator is Operator.IS_NULL:
        return (name is None) is comparison.value
    if comparison.operator not in (Operator.EQ, Operator.IN) or not all(
        type(value) in (int, str) for value in comparison.values
    ):
        return True  # how Spark writes other types as text is not known here
    return name in {str(value) for value in comparison.values}


def _before(low: int | None, high: int | None, *, unknown: bool = True) -> bool:
    return unknown if low is None or high is None else low < high


def _on_axis(value: Scalar | None, zone: ZoneInfo) -> int | None:
    """A value as a whole number that compares with all others of its column; an instant in microseconds.

    None if it is unknown.
    """
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
