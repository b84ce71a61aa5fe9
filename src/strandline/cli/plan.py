"""What a run would do, why, how, and how much of a full recompute that is.

Reads no data, changes nothing and starts no Spark.
"""

import argparse
from pathlib import Path

from strandline.app.watching import Watcher
from strandline.model.plan import Plan, Task
from strandline.model.statuses import HeldWork
from strandline.pages.documents.plan import plan_document
from strandline.pages.wording import plural, share, size

from .doing import do_work
from .held import render_held
from .output import emit
from .requests import add_selection, make_request
from .tables import render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)


def run(call: argparse.Namespace) -> int:
    plan, held = do_work(Path(call.project), "plan", make_request(call), Watcher())
    emit(call.output, "plan", plan_document(plan, held), "tasks", lambda: render_plan(plan, held))
    return 0


def render_plan(plan: Plan, held: HeldWork) -> str:
    """The plan for people: a line per task and the sum, then what is held."""
    tasks = render_tasks(plan) if plan.tasks else up_to_date(held)
    return "\n".join([tasks, *plan.notes, *render_held(held)])


def up_to_date(held: HeldWork) -> str:
    """The text where there is no task."""
    return "Nothing to do now." if held.nodes else "Everything is up to date."


def render_tasks(plan: Plan) -> str:
    columns = ("node", "cause", "strategy", "reads", "of", "share", "because")
    rows = [
        (
            t.node,
            t.cause,
            t.strategy,
            t.estimated_rows,
            t.full_rows,
            share(t.estimated_rows, t.full_rows),
            _because(t),
        )
        for t in plan.tasks
    ]
    return "\n".join(
        [render_table(columns, rows, wrap_last=True, right=("share",), grouped=True), "", summary(plan)]
    )


def summary(plan: Plan) -> str:
    rows, full = sum(t.estimated_rows for t in plan.tasks), sum(t.full_rows for t in plan.tasks)
    size_now, size_full = sum(t.estimated_bytes for t in plan.tasks), sum(t.full_bytes for t in plan.tasks)
    return (
        f"{plural(len(plan.tasks), 'task')} would read about {plural(rows, 'row')} ({size(size_now)}); "
        f"a full recompute of the same {full:,} ({size(size_full)})."
    )


def _because(task: Task) -> str:
    return f"{task.reason}: {size(task.estimated_bytes)}" if task.files else task.reason
