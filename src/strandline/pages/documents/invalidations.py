"""Invalidations as they are listed, with the columns of seed 001."""

from strandline.app.invalidations import RecordedInvalidation

_COLUMNS = (
    "id",
    "dataset",
    "scope",
    "partition_key",
    "row_filter",
    "reason",
    "source_event",
    "created_at",
    "processed_at",
    "table_version",
)


def recorded_document(recorded: RecordedInvalidation) -> dict[str, object]:
    jobs = [{"job": job, "processed_at": at} for job, at in recorded.processed_at_by_job.items()]
    return {**{name: recorded.columns[name] for name in _COLUMNS}, "jobs": jobs}
