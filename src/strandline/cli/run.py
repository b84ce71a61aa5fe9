"""Take in what is new and bring everything up to date.

Prints the plan, then progress (on stderr), then what was done.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.app.watching import Watcher
from strandline.model.plan import Plan, Status, TaskResult
from strandline.model.scope_text import describe
from strandline.pages.documents.run import run_document
from strandline.pages.wording import plural, share

from .doing import do_work
from .held import render_held
from .output import emit
from .plan import render_tasks, up_to_date
from .progress import Progress
from .requests import add_batches, add_fail_on, add_guard, add_quiet, add_selection, make_request
from .tables import render_table

_ILL = (Status.FAILED, Status.GUARDED, Status.FENCED)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_fail_on(parser)
    add_batches(parser)
    add_guard(parser)
    add_quiet(parser)


def run(call: argparse.Namespace) -> int:
    return work(Path(call.project), make_request(call), call.output, "run")


def work(folder: Path, request: RunRequest, output: str, verb: str) -> int:
    """Run a request and print it. `backfill` and `quarantine --release` are runs as well."""
    began = time.monotonic()
    progress = Progress(silent=output != "table")

    def planned(plan: Plan) -> None:
        if output == "table" and plan.tasks:
            print(render_tasks(plan), flush=True)
        progress.planned(plan)

    try:
        watcher = Watcher(
            planned=planned, started=progress.started, ended=progress.ended, waiting=progress.waiting
        )
        outcome: RunOutcome = do_work(folder, verb, request, watcher)
    finally:
        progress.close()
    seconds = time.monotonic() - began
    emit(output, verb, run_document(outcome), "tasks", lambda: render_outcome(outcome, seconds))
    return outcome.exit_code


def render_outcome(outcome: RunOutcome, seconds: float) -> str:
    """What was done, for people: a line per task, the totals, every error in full, and what is held."""
    if not outcome.results:
        notes = (*outcome.plan.notes, *outcome.outbox.lines)
        return "\n".join([up_to_date(outcome.held), *notes, *render_held(outcome.held)])
    columns = ("node", "status", "read", "of", "share", "written", "seconds", "version", "scope")
    table = render_table(
        columns,
        [_row(r) for r in outcome.results],
        wrap_last=True,
        right=("share", "seconds", "version"),
        grouped=True,
    )
    below = [
        totals(outcome, seconds),
        *_quarantined(outcome),
        *_notes(outcome),
        *_errors(outcome),
        *render_held(outcome.held),
    ]
    return "\n".join(["", table, "", *below])


def _row(result: TaskResult) -> tuple[object, ...]:
    if result.status not in (Status.DONE, Status.UNCHANGED):
        return (
            result.node,
            result.status,
            "",
            "",
            "",
            "",
            "",
            "",
            result.error if result.status is Status.BLOCKED else f"see below [{result.slug}]",
        )
    version = "" if result.table_version is None else str(result.table_version)
    scope = describe(result.covered or result.scope) if result.status is Status.DONE else ""
    measured = (
        result.rows_read,
        result.rows_full,
        share(result.rows_read, result.rows_full),
        result.rows_written,
    )
    return (result.node, result.status, *measured, f"{result.seconds:.1f}", version, scope)


def totals(outcome: RunOutcome, seconds: float) -> str:
    statuses = Counter(r.status for r in outcome.results)
    counts = ", ".join(f"{statuses[status]} {status}" for status in Status if statuses[status])
    read, full = sum(r.rows_read for r in outcome.results), sum(r.rows_full for r in outcome.results)
    written = sum(r.rows_written for r in outcome.results)
    return (
        f"{plural(len(outcome.results), 'task')} in {seconds:.1f} s: {counts}."
        f" {read:,} of {plural(full, 'row')} read, {written:,} written."
    )


def _quarantined(outcome: RunOutcome) -> list[str]:
    """A line for each dataset with refused rows."""
    lines = []
    for dataset, counts in outcome.quarantined.items():
        reasons = ", ".join(f"{number:,} {slug}" for slug, number in counts.items())
        total = plural(sum(counts.values()), "row")
        lines.append(
            f"{dataset}: {total} put in quarantine ({reasons}); see `strandline quarantine {dataset}`."
        )
    return lines


def _notes(outcome: RunOutcome) -> list[str]:
    own = [*outcome.plan.notes, *outcome.outbox.lines]
    return [*own, *(f"{r.node}: {note}" for r in outcome.results for note in r.notes)]


def _errors(outcome: RunOutcome) -> list[str]:
    lines: list[str] = []
    for result in outcome.results:
        if result.status in _ILL:
            lines += [
                "",
                f"{result.node} {result.status}:",
                *(f"  {line}" for line in result.error.splitlines()),
            ]
    return lines
