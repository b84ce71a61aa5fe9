"""The sizes at which the engine takes another path to the same result. All of them are here.

A path that only large data takes is a path that small tests do not see. So the sizes are settings for tests
(`STRANDLINE_THRESHOLDS`), and the suite runs with every path forced: all at their least, all without limit, and as shipped.
"""

from dataclasses import dataclass, fields

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """At most this much takes the first path, more takes the second."""

    small_table_bytes: int = 8 << 20
    """A table is read once through delta-rs and kept aside, else by Spark. Bytes of Parquet: some 100,000 rows."""
    looked_up_table_bytes: int = 1 << 30
    """Some keys' rows are looked up in a table through delta-rs, else read by Spark: beyond this a cluster helps."""
    looked_up_rows: int = 100_000
    """Rows that are looked up are handed over, else read by Spark's tasks."""
    listed_keys: int = 2000
    """Key hashes are a filter inside each scan, which needs no job of its own, else they are joined."""
    held_keys: int = 200_000
    """Key hashes are held in this process, and rows of theirs can be looked up, else they stay in a file."""
    examined_rows: int = 2000
    """Differing rows are examined in this process to name their keys in the write, else their rows say which keys they replace."""
    named_keys: int = 200
    """Differing keys are named in the write, which then clears those that vanish, else a vanished key is written as a deleted row."""
    partitions_at_once: int = 50
    """Partitions per query, where the result lacks the partition column and each must be computed separately."""
    interpreted_rows: int = 20_000
    """Spark interprets plans over this many rows and runs one task a stage, else it compiles them and plans adaptively."""
    handed_on_rows: int = UNLIMITED
    """Changed rows are handed on to the readers of the same run, else they read Delta's change feed."""
    followed_numbers: int = 2000
    """Block numbers that are read at once where a change of a chain is followed."""
    walked_numbers: int = 50_000
    """Block numbers that are read at once where a whole chain is walked."""


SHIPPED = Thresholds()
_LEAST = {"partitions_at_once": 1, "followed_numbers": 1, "walked_numbers": 1}
"""What is taken piece by piece has pieces of at least one."""


def least() -> Thresholds:
    """Every path that large data takes."""
    return Thresholds(**{f.name: _LEAST.get(f.name, 0) for f in fields(Thresholds)})


def unlimited() -> Thresholds:
    """Every path that small data takes."""
    return Thresholds(**{f.name: UNLIMITED for f in fields(Thresholds)})


def parse_thresholds(text: str) -> Thresholds:
    """`least`, `unlimited`, or pairs such as `named_keys=0`, separated by commas; a later one overrides. Raises ValueError."""
    values = {f.name: getattr(SHIPPED, f.name) for f in fields(Thresholds)}
    for part in filter(None, (p.strip() for p in text.split(","))):
        if part in ("least", "unlimited"):
            chosen = least() if part == "least" else unlimited()
            values = {name: getattr(chosen, name) for name in values}
            continue
        name, _, size = part.partition("=")
        if name not in values or not size.isdecimal():
            raise ValueError(part)
        values[name] = max(int(size), _LEAST.get(name, 0))
    return Thresholds(**values)
