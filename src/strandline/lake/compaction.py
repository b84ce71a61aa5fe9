"""When a table is worth rewriting: the same rows in fewer files, sorted, or without deleted ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from .files import LiveFile
from .narrowness import depth_of, enclose

ROWS_A_FILE = 300_000
"""At most this many rows are written to one file. More would break the change feed."""
SMALL_ROWS = ROWS_A_FILE // 2
"""A file with fewer rows is small: two of them fit into one."""
SORTED_ROWS = ROWS_A_FILE * 4 // 5
"""What a sorted file is meant to have. They are cut by samples, and one above the limit becomes two."""
MANY_DELETED = 0.2
"""A file with at least this share of deleted rows is rewritten without them."""
MUCH_UNSORTED = 0.2
"""The share of rows that have come since a table was sorted, from which on it may be sorted again.

So sorting costs a fixed multiple of what is written, however large the table becomes.
"""
MOST_COLUMNS = 4
"""To sort by more columns at once would make the files narrow in none of them."""


class Step(StrEnum):
    PURGE = "purge"
    MERGE = "merge"
    SORT = "sort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What Delta is asked to do."""

    step: Step
    files: int
    """Number of files that are rewritten."""
    small_bytes: int
    file_bytes: int
    sorted_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        many = f"{self.files} file{'' if self.files == 1 else 's'}"
        match self.step:
            case Step.PURGE:
                return f"{many} without deleted rows"
            case Step.MERGE:
                return f"{many} into fewer"
            case Step.SORT:
                return f"{many} sorted by {', '.join(self.sorted_by)}"


def find_compactions(files: Sequence[LiveFile], ranged: Sequence[str] = ()) -> tuple[Compaction, ...]:
    """What is worth doing, in this order.

    A file with many deleted rows is rewritten. Small files of a partition are merged if that at least halves
    their number. `ranged` are the columns in which files must stay narrow. A merge that would widen them is
    not done: the table is sorted instead, once enough of it is new.
    """
    ranged = tuple(ranged[:MOST_COLUMNS])
    rows = sum(f.rows for f in files)
    bytes_a_row = max(1.0, sum(f.bytes for f in files) / rows) if rows else 1.0
    partitions = [[f for f in files if f.partition == p] for p in dict.fromkeys(f.partition for f in files)]
    small_bytes, file_bytes = int(SMALL_ROWS * bytes_a_row), int(ROWS_A_FILE * bytes_a_row)
    if ranged and any(_are_worth_sorting(partition, ranged, small_bytes) for partition in partitions):
        size = int(SORTED_ROWS * bytes_a_row)
        sorting = Compaction(
            step=Step.SORT, files=len(files), small_bytes=small_bytes, file_bytes=size, sorted_by=ranged
        )
        return (sorting,)
    compactions = []
    if holed := sum(1 for f in files if f.deleted > f.rows * MANY_DELETED):
        # Delta also merges what it purges. Where files have to stay narrow, each is written again alone.
        size = 1 if ranged else file_bytes
        compactions.append(Compaction(step=Step.PURGE, files=holed, small_bytes=small_bytes, file_bytes=size))
    for limit in _limits(small_bytes, ranged):
        small = [[f for f in partition if f.bytes < limit] for partition in partitions]
        merged = [few for few in small if _are_worth_merging(few)]
        whole = zip(partitions, small, strict=True)
        if merged and all(_stay_narrow(partition, few, ranged) for partition, few in whole):
            count = sum(len(few) for few in merged)
            compactions.append(
                Compaction(step=Step.MERGE, files=count, small_bytes=limit, file_bytes=file_bytes)
            )
            break
    return tuple(compactions)


def _limits(small_bytes: int, ranged: Sequence[str]) -> tuple[int, ...]:
    """Sizes below which files are merged. Delta merges all of them, whatever lies between them."""
    return (small_bytes, small_bytes // 2, small_bytes // 4, small_bytes // 8) if ranged else (small_bytes,)


def _are_worth_merging(small: Sequence[LiveFile]) -> bool:
    return len(small) >= 2 * _count_merged(small)


def _count_merged(small: Sequence[LiveFile]) -> int:
    """The number of files into which small ones are merged."""
    return max(1, -(-sum(f.rows - f.deleted for f in small) // ROWS_A_FILE))


def _are_worth_sorting(partition: Sequence[LiveFile], ranged: Sequence[str], small_bytes: int) -> bool:
    unsorted = [f for f in partition if not set(ranged) <= set(f.sorted_by)]
    if any(not f.statistics.knows(column) for f in unsorted for column in ranged):
        return True  # nothing else gives it statistics, and until then it reaches every band
    rows = sum(f.rows for f in partition)
    if sum(f.rows for f in unsorted) < rows * MUCH_UNSORTED:
        return False
    small = [f for f in partition if f.bytes < small_bytes]
    if _are_worth_merging(small) and not _stay_narrow(partition, small, ranged):
        return True
    # Sorted by several columns at once, files overlap in each of them.
    best: float = max(1, rows / ROWS_A_FILE) ** ((len(ranged) - 1) / len(ranged))
    return depth_of(partition, ranged) > 1 + 1.5 * best


def _stay_narrow(partition: Sequence[LiveFile], small: Sequence[LiveFile], ranged: Sequence[str]) -> bool:
    """Whether no more files lie above each other once the small ones of a partition are merged.

    Delta merges files of like size, so each of the merged ones may have rows of all of them.
    """
    if not ranged or not small:
        return True
    count = _count_merged(small)
    merged = enclose(small, ranged)
    parts = [replace(merged, path=f"{nth}", rows=merged.rows // count) for nth in range(count)]
    left = [f for f in partition if f not in small]
    return depth_of([*left, *parts], ranged) <= max(1.0, depth_of(partition, ranged)) + _TOLERATED


_TOLERATED = 0.1
"""Two merged files may share the days of the last week, in a table of years."""
