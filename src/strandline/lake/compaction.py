"""When a table is worth writing again: the same rows in fewer files, or without those that are deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from .files import LiveFile

ROWS_A_FILE = 300_000
"""What the session writes into one file at most; more would break the change feed."""
SMALL_ROWS = ROWS_A_FILE // 2
"""A file with fewer is small: two of them fit into one."""
MANY_DELETED = 0.2
"""The share of a file's rows from which it is written again without those that its vector hides."""


class Step(StrEnum):
    PURGE = "purge"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What Delta is asked to do."""

    step: Step
    files: int
    """How many are written again."""
    small_bytes: int
    file_bytes: int

    @property
    def text(self) -> str:
        many = f"{self.files} file{'' if self.files == 1 else 's'}"
        return f"{many} without deleted rows" if self.step is Step.PURGE else f"{many} into fewer"


def find_compactions(files: Sequence[LiveFile]) -> tuple[Compaction, ...]:
    """What is worth doing, in this order: a file with many deleted rows is written again; merging at least halves the small files."""
    rows = sum(f.rows for f in files)
    bytes_a_row = max(1.0, sum(f.bytes for f in files) / rows) if rows else 1.0
    sizes = {"small_bytes": int(SMALL_ROWS * bytes_a_row), "file_bytes": int(ROWS_A_FILE * bytes_a_row)}
    found = []
    if holed := sum(1 for f in files if f.deleted > f.rows * MANY_DELETED):
        found.append(Compaction(step=Step.PURGE, files=holed, **sizes))
    small = [f for f in files if f.bytes < sizes["small_bytes"]]
    left = -(-sum(f.rows - f.deleted for f in small) // ROWS_A_FILE)
    if len(small) >= 2 * max(1, left):
        found.append(Compaction(step=Step.MERGE, files=len(small), **sizes))
    return tuple(found)
