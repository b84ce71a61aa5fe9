"""When a table is worth rewriting: the same rows in fewer files, or without deleted ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from .files import LiveFile

ROWS_A_FILE = 300_000
"""At most this many rows are written to one file. More would break the change feed."""
SMALL_ROWS = ROWS_A_FILE // 2
"""A file with fewer rows is small: two of them fit into one."""
MANY_DELETED = 0.2
"""A file with at least this share of deleted rows is rewritten without them."""


class Step(StrEnum):
    PURGE = "purge"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What Delta is asked to do."""

    step: Step
    files: int
    """Number of files that are rewritten."""
    small_bytes: int
    file_bytes: int

    @property
    def text(self) -> str:
        many = f"{self.files} file{'' if self.files == 1 else 's'}"
        return f"{many} without deleted rows" if self.step is Step.PURGE else f"{many} into fewer"


def find_compactions(files: Sequence[LiveFile]) -> tuple[Compaction, ...]:
    """What is worth doing, in this order.

    A file with many deleted rows is rewritten. Small files of a partition are merged if that at least halves
    their number.
    """
    rows = sum(f.rows for f in files)
    bytes_a_row = max(1.0, sum(f.bytes for f in files) / rows) if rows else 1.0
    sizes = {"small_bytes": int(SMALL_ROWS * bytes_a_row), "file_bytes": int(ROWS_A_FILE * bytes_a_row)}
    compactions = []
    if holed := sum(1 for f in files if f.deleted > f.rows * MANY_DELETED):
        compactions.append(Compaction(step=Step.PURGE, files=holed, **sizes))
    small = [f for f in files if f.bytes < sizes["small_bytes"]]
    partitions = [[f for f in small if f.partition == p] for p in {f.partition for f in small}]
    if merged := sum(len(partition) for partition in partitions if _are_worth_merging(partition)):
        compactions.append(Compaction(step=Step.MERGE, files=merged, **sizes))
    return tuple(compactions)


def _are_worth_merging(small: Sequence[LiveFile]) -> bool:
    left = -(-sum(f.rows - f.deleted for f in small) // ROWS_A_FILE)
    return len(small) >= 2 * max(1, left)
