"""What `verify` found."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedDataset:
    dataset: str
    result: str
    """equal, different, stale, empty or unverifiable"""
    equal: bool
    compared_rows: int = 0
    differing_rows: int = 0
    stale_rows: int = 0
    kept_rows: int = 0
    input_versions: Mapping[str, int]
    as_of: str
    examples: tuple[Mapping[str, object], ...] = ()
    reason: str = ""
    failed_keys: int | None = None
    """Of a timeline's output. What is published of them before the failure is not compared."""
    reprocessing_keys: int | None = None
    """Of a timeline's output: keys that wait for a later batch, and are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOutcome:
    datasets: tuple[VerifiedDataset, ...]

    @property
    def exit_code(self) -> int:
        """4 for a difference, and if all named datasets together compared no row: that proves nothing."""
        if any(d.result == "different" for d in self.datasets) or not sum(
            d.compared_rows for d in self.datasets
        ):
            return 4
        return 1 if any(d.result == "unverifiable" for d in self.datasets) else 0
