"""The task of a change log or a trigger that does not only follow its input.

It always appends: what was published is never replaced. Its worker finds out what can be told. Only if its
own table was damaged is the table written again.
"""

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import TableState
from strandline.model.hashing import compare_configs
from strandline.model.node import Node, NodeConfig
from strandline.model.plan import Cause, PlannedInput, Strategy, Task
from strandline.model.scope import EVERYTHING, Increment, Rows, Scope

from .backfills import is_requested
from .draft import Draft, estimated, make_full_task, make_task, planned_inputs
from .gaps import find_gap
from .request import Observed, PlanRequest
from .staleness import current_config


def plan_published(
    node: Node,
    record: NodeRecord | None,
    own: TableState | None,
    observed: Observed,
    draft: Draft,
    request: PlanRequest,
) -> Task | None:
    """None if nothing but its input can have moved."""
    if own is None or record is None or not record.cursors:
        inputs = tuple(
            PlannedInput(name=i.name, dataset=i.dataset, after=None, changes=True) for i in node.inputs
        )
        origins = tuple(Increment(dataset=i.dataset, coming=i.dataset in draft.tasks) for i in node.inputs)
        reason = "it has not been built yet"
        return _append(node, Cause.NEW_NODE, reason, Rows(origins=origins), inputs, observed, draft)
    gap = find_gap(node, record, own, observed)
    if gap and not gap.in_input:
        return make_full_task(node, observed, draft, Cause.GAP, gap.reason, new=True)
    inputs = planned_inputs(node, record, observed, draft)
    if is_requested(node, request, None):
        assert request.backfill is not None
        why = f": {request.backfill.reason}" if request.backfill.reason else ""
        reason = f"backfill requested{why}"
        return _append(node, Cause.PERSON, reason, EVERYTHING, inputs, observed, draft)
    if gap:
        return _append(node, Cause.GAP, gap.reason, EVERYTHING, inputs, observed, draft)
    if changed := find_changed(record, current_config(node, observed)):
        reason = f"its declaration changed: {changed}"
        return _append(node, Cause.CONFIGURATION, reason, EVERYTHING, inputs, observed, draft)
    return None


def find_changed(record: NodeRecord, config: NodeConfig) -> str:
    """The parts of the declaration that differ from those with which the node was last written."""
    if not record.configs or record.configs[-1].hash == config.hash:
        return ""
    changed, _ = compare_configs(record.configs[-1].parts, config)
    return ", ".join(f"`{part}`" for part in changed) or "its configuration"


def _append(
    node: Node,
    cause: Cause,
    reason: str,
    scope: Scope,
    inputs: tuple[PlannedInput, ...],
    observed: Observed,
    draft: Draft,
) -> Task:
    task = make_task(node, cause, Strategy.APPEND, reason, scope, inputs, draft)
    return estimated(node, task, observed, draft)
