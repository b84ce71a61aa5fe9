"""The invalidations that were recorded, and which job has processed which. Starts no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strandline.catalog import read_invalidations

from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedInvalidation:
    """With the columns of seed 001."""

    columns: Mapping[str, Any]
    processed_at_by_job: Mapping[str, datetime | None]
    """None if the job still has to process it."""


def list_invalidations(workspace: Workspace) -> tuple[RecordedInvalidation, ...]:
    """The newest first."""
    jobs = [node.name for node in workspace.project.nodes if node.traits.answers_invalidations]
    invalidations, owed = read_invalidations(workspace.catalog, jobs)
    processed: dict[str, dict[str, datetime | None]] = {}
    for row in owed:
        processed.setdefault(row["invalidation_id"], {})[row["job"]] = row["processed_at"]
    return tuple(
        RecordedInvalidation(columns=row, processed_at_by_job=processed.get(row["id"], {}))
        for row in reversed(invalidations)
    )
