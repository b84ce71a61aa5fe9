"""The oldest version whose files are kept, for `--known-at` and for readers that lag behind. Pure."""

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
    """The oldest of every cursor and the version that was the newest at `kept_since`.

    A commit without a time counts as older than any other.
    """
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
