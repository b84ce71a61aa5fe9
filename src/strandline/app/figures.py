"""What a monitoring system is told about a project: how far behind it is, and what waits. Starts no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.catalog import count_by_endpoint, find_oldest_waiting
from strandline.model.statuses import FRESH, TimelineStatus

from .clock import now
from .status import read_overview
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    behind_seconds: Mapping[str, float]
    """By dataset: since when it has not been fresh. 0 if it is."""
    quarantined_rows: Mapping[str, int]
    """By fact dataset."""
    deliveries: Mapping[tuple[str, str], int]
    """By endpoint and status."""
    oldest_seconds: Mapping[str, float]
    """By endpoint: the age of the oldest delivery that waits. 0 if none does."""
    timelines: tuple[TimelineStatus, ...]


def read_figures(workspace: Workspace) -> Figures:
    project, at = workspace.project, now()
    overview = read_overview(workspace)
    oldest = find_oldest_waiting(workspace.catalog)
    return Figures(
        behind_seconds={
            status.dataset: 0.0
            if status.state == FRESH or status.since is None
            else max((at - status.since).total_seconds(), 0.0)
            for status in overview.statuses
        },
        quarantined_rows={
            status.dataset.removesuffix("_quarantine"): status.rows
            for status in overview.statuses
            if project.get(status.dataset).traits.holds_refused
        },
        deliveries={
            (endpoint, str(status)): count
            for (endpoint, status), count in count_by_endpoint(workspace.catalog).items()
        },
        oldest_seconds={
            endpoint: max((at - oldest[endpoint]).total_seconds(), 0.0) if endpoint in oldest else 0.0
            for endpoint in project.endpoints
        },
        timelines=overview.timelines,
    )
