"""What a run did, task by task."""

from strandline.app.run import RunOutcome
from strandline.model.key_states import REPROCESSING
from strandline.model.plan import TaskResult, describe_covered

from .held import held_document


def run_document(outcome: RunOutcome) -> dict[str, object]:
    return {
        "run": outcome.run,
        "as_of": outcome.plan.as_of,
        "tasks": [task_document(result) for result in outcome.results],
        "quarantined": {dataset: dict(counts) for dataset, counts in outcome.quarantined.items()},
        **({"notes": notes} if (notes := [*outcome.plan.notes, *outcome.outbox.lines]) else {}),
        **held_document(outcome.held),
    }


def task_document(result: TaskResult) -> dict[str, object]:
    document: dict[str, object] = {
        "node": result.node,
        "kind": result.kind,
        "cause": result.cause,
        "strategy": result.strategy,
        "reason": result.reason,
        "scope": describe_covered(result),
        "status": result.status,
        "input_versions": dict(result.input_versions),
        "rows_read": result.rows_read,
        "rows_written": result.rows_written,
        "rows_full": result.rows_full,
        "seconds": result.seconds,
        "table_version": result.table_version,
        "counts": dict(result.counts),
    }
    if REPROCESSING in result.counts:
        document["batches"] = result.batches
    extra = {"error": result.error, "slug": result.slug, "notes": list(result.notes)}
    return document | {name: value for name, value in extra.items() if value}
