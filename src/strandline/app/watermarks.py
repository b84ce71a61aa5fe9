"""Up to which date the outputs of timelines are complete."""

from dataclasses import dataclass
from datetime import date

from strandline.lake.dates import read_dates
from strandline.lake.heads import find_recorded
from strandline.lake.location import Lake
from strandline.model.business_dates import find_last, last_day_due
from strandline.model.node import Node

WATERMARK = "watermark_on"
"""The column of a timeline's states that says up to which date a key is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """How far a version of a valuation reaches."""

    day: date
    """The last calendar day that was due. It need not be a business date."""
    business_date: date | None
    """The last business date up to that day. None if there is none."""


def find_valued(lake: Lake, node: Node, version: int) -> Valued | None:
    """None for a node that is not computed on business dates, or whose log does not tell."""
    dates = node.traits.business_dates
    recorded = find_recorded(lake.table(node.name), version) if dates is not None else None
    if dates is None or recorded is None:
        return None
    day = last_day_due(recorded.as_of, dates)
    listed = None
    if dates.dataset:
        cursor = recorded.inputs.get(dates.dataset)
        listed = read_dates(lake, dates.dataset, cursor.version, dates.column) if cursor else ()
    return Valued(day=day, business_date=find_last(day, listed))


def read_defaults(lake: Lake, node: Node, version: int) -> dict[str, object]:
    """By column of a timeline's states: what NULL stands for in current keys."""
    valued = find_valued(lake, node, version)
    return {WATERMARK: valued.business_date} if valued and valued.business_date else {}
