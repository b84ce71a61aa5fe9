"""Runs as they are listed, and one run with its tasks."""

from strandline.app.run_log import RunDetail
from strandline.model.catalog_records import RunRecord
from strandline.model.json_values import recorded_instant

from .run import task_document


def run_record_document(record: RunRecord) -> dict[str, object]:
    return {
        "run": record.run,
        "as_of": recorded_instant(record.as_of),
        "cause": record.cause,
        "status": record.status or "running",
        "started_at": record.started_at,
        "ended_at": record.ended_at,
    }


def run_detail_document(detail: RunDetail) -> dict[str, object]:
    tasks = [task_document(result) for result in detail.results]
    return {**run_record_document(detail.record), "tasks": tasks}
