"""The plain worker of valuations: the model of the valuation over the rows of tables."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.business_dates import last_day_due
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.timeline import Valuation
from strandline.plan import clock as clocks
from tests.faults.kinds.timeline.data import FIELDS, HISTORY, TRADES, make_declaration
from tests.faults.kinds.timeline.layout import Layout, number, read_model, read_published
from tests.faults.kinds.timeline.worker import COLUMNS as FOLDED
from tests.faults.plain_work import Work, live
from tests.faults.table_log import Row
from tests.property.timeline_model import Task, ValuationNode, ValuationVersion
from tests.property.timeline_reach import FoldVersion, Seen
from tests.property.timeline_table import Table
from tests.property.timeline_world import Date

from .data import MARKS, make_inputs

COLUMNS = {**FOLDED, "worth": pa.int64(), "fresh": pa.bool_(), "issued": pa.int64()}
MARKED_KEYS = "marked keys"


def prepare(work: Work) -> Prepared:
    """Value the keys and dates that a change reaches, and compare with what is published."""
    own = read_published(work)
    before = read_model(own or (), tuple(COLUMNS))
    settings = work.desk.project.settings
    node = ValuationNode(make_declaration(_scale_of(work.node)), settings.batch_rows)
    as_of = _find_as_of(work)
    task = _begin(node, before, work, due_date(work.node, as_of), new=own is None)
    published, first = node.clock, False
    if own is None or work.full:
        node.publish_all(task)
    elif _has_news(work, node, task):
        node.publish_first(task)
        first = True
    else:
        node.publish_batch(task)
    after = node.table
    layout = Layout(columns=COLUMNS, work=work, as_of=as_of)
    due = any(published < on <= task.clock for on in task.now.calendar)
    prepared = _tell(layout.prepare(own, before, after, records=due), before, after)
    only_marks = prepared.waiting and first and not node.computed
    return replace(prepared, batches=0 if only_marks else 1)


def _begin(node: ValuationNode, before: Table, work: Work, clock: Date, *, new: bool) -> Task:
    """The task, with the node as the last commit left it."""
    now = read_seen(*(work.read(name) for name in (HISTORY, MARKS.dataset, TRADES.dataset)))
    if not new:
        node.seen = _read_before(work) or now
        recorded = work.record.as_of if work.record else ""
        node.clock = due_date(work.node, datetime.fromisoformat(recorded)) if recorded else clock
        node.versions = [ValuationVersion(table=before, seen=node.seen, clock=node.clock)]
    return node.begin(now, clock, everything=work.full)


def _read_before(work: Work) -> Seen | None:
    """What had been read before. None for a task that reads everything: the versions may be gone."""
    if work.full:
        return None
    return read_seen(*(work.read_before(name) for name in (HISTORY, MARKS.dataset, TRADES.dataset)))


def read_seen(history: Iterable[Row], marks: Iterable[Row], trades: Iterable[Row]) -> Seen:
    inputs = make_inputs(live(marks), live(trades))
    folded = FoldVersion(table=read_model(history, FIELDS), facts={})
    return Seen(history=folded, calendar=inputs.calendar, references=inputs.references)


def _find_as_of(work: Work) -> datetime:
    return clocks.effective_as_of(work.node, work.record, work.desk.as_of, work.task)


def due_date(node: Node, as_of: datetime) -> Date:
    return number(last_day_due(as_of, valuation_of(node).calendar))


def valuation_of(node: Node) -> Valuation:
    assert isinstance(node.definition, Valuation)
    return node.definition


def _scale_of(node: Node) -> int:
    """What the declaration multiplies by: the last factor of `worth`."""
    return int(valuation_of(node).columns[0].sql.rsplit("*", 1)[1])


def _has_news(work: Work, node: ValuationNode, task: Task) -> bool:
    """Whether anything has changed. Otherwise the task goes on with the keys that are marked."""
    moved = any(entry.changes_rows for i in work.node.inputs for entry in work.entries(i.dataset))
    return moved or any(node.clock < on <= task.clock for on in task.now.calendar)


def _tell(prepared: Prepared, before: Table, after: Table) -> Prepared:
    waiting = (MARKED_KEYS,) if any(head.pending for head in after.heads.values()) else ()
    prepared = replace(prepared, waiting=waiting, whole=prepared.whole and not waiting)
    valued = {key: head for key, head in after.heads.items() if not head.pending}
    missing = [key for key, head in valued.items() if head.waits and before.heads.get(key) != head]
    if not missing:
        return prepared
    refused = WorkError(
        f"{missing} cannot be valued on every date.", remedy="Add the rows.", slug="reference-missing"
    )
    return replace(prepared, task_counts={"failed": len(missing)}, refused=refused)
