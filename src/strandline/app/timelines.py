"""What `status` tells about timelines: keys by status, how far they are behind, and each business date."""

from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime

from strandline.catalog import Catalog, count_fenced
from strandline.lake.dates import read_dates
from strandline.lake.heads import count_heads, count_heads_by_date
from strandline.lake.location import Lake
from strandline.lake.table import Table, open_table
from strandline.model.business_dates import due_from, find_between, find_dates, last_day_due
from strandline.model.key_states import (
    DateKeys,
    HeadCount,
    KeysStatus,
    count_by_date,
    count_keys,
    find_lowest,
)
from strandline.model.node import Node, Project
from strandline.model.statuses import TimelineStatus
from strandline.model.timeline import KeyStatus

from .watermarks import Valued, find_valued
from .workspace import Workspace


def read_keys(lake: Lake, node: Node) -> KeysStatus | None:
    """The keys of a node by status. None if it is not an output of a timeline, or was never built."""
    table = open_table(lake.table(node.name)) if node.traits.folding else None
    if table is None:
        return None
    valued = find_valued(lake, node, table.version)
    return count_keys(count_heads(table), valued.business_date if valued else None)


def read_timelines(
    workspace: Workspace, names: Collection[str], now: datetime, *, with_dates: bool
) -> tuple[TimelineStatus, ...]:
    """The timelines whose last output is among these nodes. `with_dates`: each business date, too."""
    project, lake = workspace.project, workspace.lake
    return tuple(
        _read_timeline(project, lake, workspace.catalog, timeline, now, with_dates=with_dates)
        for timeline, node in project.timelines.items()
        if node.name in names
    )


def _read_timeline(
    project: Project, lake: Lake, catalog: Catalog, timeline: str, now: datetime, *, with_dates: bool
) -> TimelineStatus:
    node = project.timelines[timeline]
    folding, dates = node.traits.folding, node.traits.business_dates
    assert folding is not None
    dropped = count_fenced(catalog, (folding.history, folding.last))
    status = TimelineStatus(timeline=timeline, dataset=node.name, keys=KeysStatus(), dropped=dropped)
    table = open_table(lake.table(node.name))
    if table is None:
        return status
    heads, valued = count_heads(table), find_valued(lake, node, table.version)
    status = replace(status, keys=count_keys(heads, valued.business_date if valued else None))
    if dates is None or valued is None:
        return status
    due, listed = last_day_due(now, dates), _read_listed(lake, node)
    lag, gap = 0.0, 0
    if (lowest := find_lowest(heads, valued.day)) and (late := find_between(lowest, due, listed)):
        lag = max(0.0, (now - due_from(late[0], dates)).total_seconds())
    working = [head for head in heads if head.status is not KeyStatus.FAILED]
    if lowest := find_lowest(working, valued.day):
        gap = len(find_between(lowest, due, listed))
    by_date = _read_by_date(lake, node, table, valued, due, listed) if with_dates else ()
    return replace(status, lag_seconds=lag, gap_days=gap, dates=by_date)


def _read_listed(lake: Lake, node: Node) -> tuple[date, ...] | None:
    """All business dates as they are known now. None if they are weekdays."""
    dates = node.traits.business_dates
    if dates is None or not dates.dataset:
        return None
    calendar = open_table(lake.table(dates.dataset))
    return read_dates(lake, dates.dataset, calendar.version, dates.column) if calendar else ()


def _read_by_date(
    lake: Lake, node: Node, table: Table, valued: Valued, due: date, listed: tuple[date, ...] | None
) -> tuple[DateKeys, ...]:
    """The keys on each business date that is due, from the first date of any key on."""
    folding = node.traits.folding
    history = open_table(lake.table(folding.history)) if folding else None
    if folding is None or history is None:
        return ()
    heads: tuple[HeadCount, ...] = count_heads_by_date(table, history, folding.key)
    first = min((head.first_on for head in heads if head.first_on), default=None)
    if first is None:
        return ()
    days = find_dates(first, due, listed)
    return count_by_date(heads, days, valued.day)
