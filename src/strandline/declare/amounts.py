"""Durations and sizes as people write them: `15 s`, `5 min`, `2 h`, `256 KiB`."""

import re
from datetime import timedelta
from math import isfinite

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
}
_LONGEST = 100 * 366 * 86_400
"""In seconds: the databases' clocks reach further than this from today."""
_BYTES = {"b": 1, "kib": 1024, "mib": 1024**2, "kb": 1000, "mb": 1000**2}


def find_duration(text: str) -> timedelta | None:
    """None if the text is not a duration of at most a hundred years."""
    amount = _AMOUNT.fullmatch(text)
    unit = _SECONDS.get(amount[2].lower()) if amount else None
    if amount is None or unit is None:
        return None
    seconds = float(amount[1]) * unit
    return timedelta(seconds=seconds) if seconds <= _LONGEST else None


def find_size(text: str | int) -> int | None:
    """A number of bytes. None if the text is not a size."""
    if isinstance(text, int):
        return text
    amount = _AMOUNT.fullmatch(text)
    factor = _BYTES.get(amount[2].lower()) if amount else None
    if amount is None or factor is None or not isfinite(size := float(amount[1]) * factor):
        return None
    return int(size)
