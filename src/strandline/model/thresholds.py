"""The sizes at which the engine takes another path to the same result. All of them are here.

Small tests do not reach a path that only large data takes. So the sizes are settings for tests
(`STRANDLINE_THRESHOLDS`), and the suite forces every path: it runs with all sizes at their least, with all
without limit, and with the shipped ones.
"""

from dataclasses import dataclass, fields

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """At most this much takes the first path, more takes the second."""

    small_table_bytes: int = 8 << 20
    """A table is read once through delta-rs and cached, else by Spark.

    In bytes of Parquet: about 100,000 rows.
    """
    small_heads_bytes: int = 32 << 20
    """The heads of a timeline's table are read once through delta-rs and cached, else by Spark."""
    looked_up_table_bytes: int = 1 << 30
    """Rows of some keys are looked up in a table through delta-rs, else read by Spark: a cluster helps."""
    looked_up_rows: int = 100_000
    """Rows that are looked up are passed to Spark, else Spark's tasks read them."""
    listed_keys: int = 2000
    """Key hashes are a filter inside each scan, which needs no extra Spark job, else they are joined."""
    held_keys: int = 200_000
    """Key hashes are kept in this process, so that their rows can be looked up, else they stay in a file."""
    examined_rows: int = 2000
    """Differing rows are examined in this process to name their keys in the write.

    Else the written rows themselves determine which keys they replace.
    """
    named_keys: int = 200
    """Differing keys are named in the write, which then removes those that are gone.

    Else a key that is gone is written as a deleted row.
    """
    partitions_at_once: int = 50
    """Partitions per query if the result lacks the partition column and each must be computed separately."""
    interpreted_rows: int = 20_000
    """Spark interprets plans and runs one task per stage, else it compiles them and plans adaptively."""
    interpreted_variable_rows: int = 100_000
    """The same for rows that an entity of many variables (`derived_columns`) follows.

    Each task of Spark compiles all expressions of its stage: at 400 variables that takes seconds.
    """
    derived_columns: int = 60
    """Spark derives conditions from the variables of an entity while it plans, else it does not."""
    incremental_rows: int = 20_000
    """The rows of an entity's inputs up to which it is never computed in full because much of it changes.

    There it saves nothing that can be measured.
    """
    full_percent: int = 33
    """The part of those rows, in percent, that a task reads to compute some entities, else it computes all.

    To find rows of some entities and to compare each with what is published takes longer for each row.
    """
    compared_at_once: int = 200_000
    """Cells of a valuation are computed while they are compared, else they are staged before.

    If one of them lacks a required reference, they are staged and compared again.
    """
    references_at_once: int = 4
    """References of a valuation up to which that is done: Spark plans much longer for each one more."""
    narrowed_heads: int = 20_000
    """Keys of a valuation's task whose heads are taken out of all heads, else Spark joins with all heads."""
    handed_on_rows: int = UNLIMITED
    """Changed rows are passed to the readers of the same run, else those read Delta's change feed."""
    followed_numbers: int = 2000
    """Block numbers that are read at once when a change of a chain is followed."""
    walked_numbers: int = 50_000
    """Block numbers that are read at once when a whole chain is walked."""


SHIPPED = Thresholds()
_LEAST = {"partitions_at_once": 1, "followed_numbers": 1, "walked_numbers": 1}
"""Sizes of batches, which cannot be less than one."""
_SHARES = ("full_percent",)
"""Parts of the whole. Data of any size takes both paths."""


def least() -> Thresholds:
    """Every path that large data takes."""
    kept = {name: getattr(SHIPPED, name) for name in _SHARES}
    return Thresholds(**({f.name: _LEAST.get(f.name, 0) for f in fields(Thresholds)} | kept))


def unlimited() -> Thresholds:
    """Every path that small data takes."""
    return Thresholds(**{f.name: UNLIMITED for f in fields(Thresholds)})


def parse_thresholds(text: str) -> Thresholds:
    """Parse `least`, `unlimited`, or pairs such as `named_keys=0`, separated by commas.

    A later one overrides an earlier one. Raises ValueError.
    """
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
