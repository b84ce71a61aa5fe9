"""`quarantine`: what was refused and why. Starts no Spark.

A release is a run (`RunRequest.release`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strandline.lake.refused import read_refused
from strandline.model.columns import INGESTED_AT, POSITION
from strandline.model.errors import CallError
from strandline.plan.selection import get_nodes

from .reading import Readable

EXAMPLES = 3
"""At most this many rows are shown as examples of each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One row that failed its decode."""

    source_position: tuple[object, ...]
    reason: str
    slug: str
    payload: str | None
    ingested_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineContent:
    counts: Mapping[str, int]
    """The number of rows by reason (slug), the most frequent first."""
    examples: Mapping[str, tuple[Refused, ...]]
    """By reason: the rows that were received first."""
    rows: tuple[Refused, ...]
    """In the order in which they were received, up to the limit."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def read_quarantine(workspace: Readable, name: str, limit: int | None = None) -> QuarantineContent:
    """What is in quarantine. At most `limit` rows are listed; None lists all."""
    project = workspace.project
    node = next((n for n in get_nodes(project, name) if project.get(n).traits.holds_refused), None)
    if node is None and (beside := f"{name.removesuffix('_facts')}_quarantine") in project.names:
        node = beside
    if node is None:
        raise CallError(
            f"`{name}` has no quarantine.",
            remedy=f"Name a fact dataset: {', '.join(project.fact_datasets)}.",
            slug="no-quarantine",
        )
    read = read_refused(workspace.lake.table(node), EXAMPLES, limit)
    examples = {
        slug: tuple(_refused(row) for row in read.examples if row["slug"] == slug) for slug in read.counts
    }
    return QuarantineContent(
        counts=read.counts, examples=examples, rows=tuple(_refused(row) for row in read.rows)
    )


def _refused(row: dict[str, Any]) -> Refused:
    return Refused(
        source_position=tuple(row[POSITION]),
        reason=row["reason"],
        slug=row["slug"],
        payload=row["payload"],
        ingested_at=row[INGESTED_AT],
    )
