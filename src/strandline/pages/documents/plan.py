"""A plan: its tasks, and what is held and not run."""

from strandline.model.plan import Held, Plan, Task
from strandline.model.scope_text import describe
from strandline.model.statuses import HeldWork

from .held import held_document


def plan_document(plan: Plan, held: HeldWork) -> dict[str, object]:
    return {
        "as_of": plan.as_of,
        "tasks": [_task(task) for task in plan.tasks],
        "stale": [_held(held) for held in plan.stale],
        "frozen": [_held(held) for held in plan.frozen],
        **({"notes": list(plan.notes)} if plan.notes else {}),
        **held_document(held),
    }


def _task(task: Task) -> dict[str, object]:
    return {
        "node": task.node,
        "kind": task.kind,
        "cause": task.cause,
        "strategy": task.strategy,
        "reason": task.reason,
        "scope": describe(task.scope),
        "input_versions": {i.dataset: i.after.version for i in task.inputs if i.after is not None},
        "estimated_rows": task.estimated_rows,
        "estimated_bytes": task.estimated_bytes,
        "full_rows": task.full_rows,
        "full_bytes": task.full_bytes,
    }


def _held(held: Held) -> dict[str, object]:
    return {
        "node": held.node,
        "reason": held.reason,
        "changed": list(held.changed),
        **({"partitions": list(held.partitions)} if held.partitions else {}),
        "backfill_rows": held.backfill_rows,
    }
