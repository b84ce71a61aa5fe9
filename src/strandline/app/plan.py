"""`plan`: what would be done, why, how, and how much against a full recompute. Starts no Spark."""

from strandline.model.plan import Plan
from strandline.model.statuses import HeldWork
from strandline.plan.held_work import find_held

from .planning import RunRequest, make_plan
from .workspace import Workspace


def show_plan(workspace: Workspace, request: RunRequest) -> tuple[Plan, HeldWork]:
    """The plan, and what waits for a backfill once it is done."""
    plan, observed = make_plan(workspace, request)
    return plan, find_held(workspace.project, observed, plan)
