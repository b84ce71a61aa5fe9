"""What a server counts and logs about its own work."""

from contextlib import suppress

import structlog

from strandline.app.clock import now
from strandline.app.deliveries import Sent
from strandline.app.run import RunOutcome
from strandline.app.timelines import read_timelines
from strandline.app.workspace import Workspace
from strandline.model.errors import StrandlineError
from strandline.model.plan import Status

from .measures import Measures

_RESTATED = "restated"
"""Of a timeline's task: the keys that got another epoch."""

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
            token=result.token,
            table_version=result.table_version,
            rows_written=result.rows_written,
            seconds=result.seconds,
            **({"new_epochs": result.counts[_RESTATED]} if _RESTATED in result.counts else {}),
            **({"slug": result.slug} if result.slug else {}),
        )


def log_timelines(workspace: Workspace, outcome: RunOutcome) -> None:
    """Say in the log up to which date the timelines are complete that a run has written to."""
    written = {result.node for result in outcome.results if result.status is Status.DONE}
    with suppress(StrandlineError):  # what cannot be read now is told after the next run
        for timeline in read_timelines(workspace, written, now(), with_dates=False):
            log.info(
                "timeline",
                run=outcome.run,
                node=timeline.dataset,
                timeline=timeline.timeline,
                watermark=None if timeline.keys.watermark_on is None else f"{timeline.keys.watermark_on}",
                current=timeline.keys.current,
                reprocessing=timeline.keys.reprocessing,
                failed=timeline.keys.failed,
            )


def count_sent(measures: Measures, sent: Sent) -> None:
    for (endpoint, result), number in sent.counts.items():
        measures.add("delivery_attempts_total", endpoint, result, by=number)
    for endpoint, seconds in sent.seconds:
        measures.time("delivery_seconds", seconds, endpoint)
