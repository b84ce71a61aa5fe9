"""What a server counts and logs about its own work."""

import structlog

from strandline.app.deliveries import Sent
from strandline.app.run import RunOutcome

from .measures import Measures

log = structlog.get_logger("strandline.serve")


def count_run(measures: Measures, outcome: RunOutcome) -> None:
    """Count a run that has ended, and say so in the log."""
    if not outcome.results:
        return
    measures.add("runs_total", "failed" if outcome.exit_code else "done")
    for result in outcome.results:
        measures.add("tasks_total", result.node, str(result.status))
        measures.add("rows_read_total", result.node, by=result.rows_read)
        measures.add("rows_written_total", result.node, by=result.rows_written)
        measures.time("task_seconds", result.seconds, result.node)
        log.info(
            "task",
            run=outcome.run,
            node=result.node,
            status=str(result.status),
            table_version=result.table_version,
            rows_written=result.rows_written,
            seconds=result.seconds,
            **({"slug": result.slug} if result.slug else {}),
        )


def count_sent(measures: Measures, sent: Sent) -> None:
    for (endpoint, result), number in sent.counts.items():
        measures.add("delivery_attempts_total", endpoint, result, by=number)
