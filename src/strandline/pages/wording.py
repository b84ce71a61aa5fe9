"""Instants, sizes, counts and held work in words, on pages and on the command line."""

from datetime import UTC, datetime

from strandline.model.key_states import KeysStatus
from strandline.model.statuses import HeldNode, HeldState

_NAMED = 5
"""At most this many partitions are named. The rest is counted."""


def instant(value: datetime | None) -> str:
    """`2024-01-13 08:30:00`, in UTC, with a fraction only if there is one."""
    if value is None:
        return ""
    text = (
        value.astimezone(UTC)
        .replace(tzinfo=None)
        .isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
    )
    return text.rstrip("0") if value.microsecond else text


def moment(value: datetime | None) -> str:
    """An instant to the second, where a fraction would mean nothing to a person."""
    return "" if value is None else instant(value.replace(microsecond=0))


def size(value: int) -> str:
    """Bytes in the unit that people would use."""
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def share(part: int, whole: int) -> str:
    """A share of the whole, with as many digits as mean something."""
    if whole <= 0:
        return ""
    percent = 100 * part / whole
    return (
        f"{percent:.0f} %"
        if percent >= 10 or percent == 0
        else f"{percent:.1f} %"
        if percent >= 0.1
        else "< 0.1 %"
    )


def plural(number: int, word: str) -> str:
    if number == 1:
        return f"{number:,} {word}"
    ends_in_ies = word.endswith("y") and word[-2:-1] not in "aeiou"
    return f"{number:,} {word.removesuffix('y')}ies" if ends_in_ies else f"{number:,} {word}s"


def describe_keys(keys: KeysStatus) -> str:
    """`1,200 keys: 1,190 current, 10 failed; complete up to 2024-01-12`"""
    parts = (("current", keys.current), ("reprocessing", keys.reprocessing), ("failed", keys.failed))
    counts = ", ".join(f"{number:,} {word}" for word, number in parts if number)
    total = f"{plural(keys.total, 'key')}{': ' if counts else ''}{counts}"
    return f"{total}; complete up to {keys.watermark_on}" if keys.watermark_on else total


def describe_held(node: HeldNode) -> str:
    """`orders_facts: `key` changed; last written 2024-01-12 08:00:00; 5 facts wait since ...; ...`"""
    parts = [f"{node.node}: {node.reason}{_name_partitions(node)}"]
    if node.written_at:
        parts.append(f"last written {moment(node.written_at)}")
    parts.append(_describe_waiting(node))
    parts.append(f"a backfill reads about {plural(node.backfill_rows, 'row')}")
    return "; ".join(parts)


def _describe_waiting(node: HeldNode) -> str:
    if node.state is HeldState.STALE:
        return f"at most {plural(node.waiting_rows, 'row')} of an older configuration"
    if not node.waiting_rows:
        return "nothing new waits for it"
    since = f" since {moment(node.waiting_since)}" if node.waiting_since else ""
    verb = "waits" if node.waiting_rows == 1 else "wait"
    return f"{plural(node.waiting_rows, 'new row')} {verb} for it{since}"


def _name_partitions(node: HeldNode) -> str:
    if not node.partitions:
        return ""
    more = f" and {len(node.partitions) - _NAMED:,} more" if len(node.partitions) > _NAMED else ""
    return f" in {', '.join(node.partitions[:_NAMED])}{more}"
