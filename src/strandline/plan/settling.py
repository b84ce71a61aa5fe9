"""Tasks that only record what a table already has, and those of sources."""

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import TableState
from strandline.model.node import Node
from strandline.model.plan import Cause, PlannedInput, Strategy, Task
from strandline.model.scope import NOTHING
from strandline.model.traits import Writing

from .draft import Draft, estimated, lacks_input, make_task
from .estimates import Amount
from .request import Observed
from .sources import plan_source


def receive_source(node: Node, observed: Observed, draft: Draft) -> Task | None:
    task = plan_source(node, observed)
    if task is None:
        return settle_unrecorded(
            node, observed.view.nodes.get(node.name), observed.tables.get(node.name), (), observed, draft
        )
    draft.increments[node.name] = Amount(rows=task.estimated_rows, bytes=task.estimated_bytes)
    return task


def settle_unrecorded(
    node: Node,
    record: NodeRecord | None,
    own: TableState | None,
    inputs: tuple[PlannedInput, ...],
    observed: Observed,
    draft: Draft,
) -> Task | None:
    """Record a commit that the catalog lacks and that makes nobody behind (L6).

    Examples are a backfill's commit, and the first of a source without files. The task finds nothing else to
    do.
    """
    unknown = own.commits_after(record.table_version if record else -1) if own else ()
    missed = [c.version for c in unknown if c.metadata and not c.metadata.operation.is_bare]
    if not missed:
        return None
    strategy = (
        Strategy.APPEND if node.traits.writing in (Writing.RECEIVES, Writing.APPENDS) else Strategy.RECOMPUTE
    )
    reason = f"the catalog does not contain its version {', '.join(map(str, missed))}"
    task = make_task(node, Cause.GAP, strategy, reason, NOTHING, inputs, draft)
    return estimated(node, task, observed, draft)


def settle_alone(node: Node, observed: Observed, draft: Draft) -> Task | None:
    """For a node that is not computed: record a commit that the catalog lacks.

    It may be the backfill of a frozen node. What its inputs have is considered only after that is known.
    """
    record = observed.view.nodes.get(node.name)
    if record is None or lacks_input(node, observed, draft):
        return None
    known = ((i, record.cursors.get(i.dataset)) for i in node.inputs)
    inputs = tuple(
        PlannedInput(name=i.name, dataset=i.dataset, after=cursor, changes=False) for i, cursor in known
    )
    return settle_unrecorded(node, record, observed.tables.get(node.name), inputs, observed, draft)
