"""The files that runs stage before they commit. They are removed when a run ends, and after one that died."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from strandline.catalog import read_runs

from .clock import now
from .workspace import Workspace

_LONGEST_RUN = timedelta(days=1)
"""With several writers, a run that is open in the catalog may be at work for this long."""
_NEWEST_RUNS = 1000
_open_here: set[str] = set()
"""The runs of this process."""


@contextmanager
def staged(workspace: Workspace, run: str) -> Iterator[None]:
    """A staging folder for a run. What dead runs left is removed first; what other runs use is kept."""
    from strandline.lake.staging import clear_staging

    _open_here.add(run)
    try:
        clear_abandoned(workspace)
        yield
    finally:
        clear_staging(workspace.lake, run)
        _open_here.discard(run)


def clear_abandoned(workspace: Workspace) -> None:
    """Remove what dead runs left behind."""
    from strandline.lake.staging import clear_staging

    for run in find_abandoned(workspace):
        clear_staging(workspace.lake, run)


def find_abandoned(workspace: Workspace) -> list[str]:
    """The runs whose folder still exists although they no longer work.

    A lake with one writer has no runs but those of this process.
    """
    from strandline.lake.staging import list_staging

    left = list_staging(workspace.lake)
    if not left:
        return []
    alive = set(_open_here)
    if not workspace.lake.one_writer:
        since = now() - _LONGEST_RUN
        alive |= {
            r.run
            for r in read_runs(workspace.catalog, _NEWEST_RUNS)
            if r.ended_at is None and r.started_at > since
        }
    return [run for run in left if run not in alive]
