"""From which version on a table's files are kept: what `--known-at` may ask for, and what a node has yet to read. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from strandline.lake.log import LogEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    version: int
    """The oldest version that stays readable, with all changes after it."""
    because: str


def find_horizon(
    entries: Sequence[LogEntry], cursors: Mapping[str, int], kept_since: datetime, keep: str
) -> Horizon:
    """The oldest of: the version that was the newest at `kept_since`, and every cursor. A commit without a time is as old as can be."""
    then = [e.version for e in entries if e.committed_at is None or e.committed_at <= kept_since]
    version = max(then, default=entries[0].version if entries else 0)
    reader = min(cursors, key=lambda name: cursors[name], default=None)
    if reader is not None and cursors[reader] < version:
        return Horizon(
            version=cursors[reader], because=f"`{reader}` has read it up to version {cursors[reader]}"
        )
    return Horizon(version=version, because=f"everything of the last {keep} is kept (`settings.keep`)")


def read_announced(entries: Sequence[LogEntry]) -> int:
    """From which version on the table says its files are kept."""
    return max((e.metadata.readable_from for e in entries if e.metadata), default=0)
