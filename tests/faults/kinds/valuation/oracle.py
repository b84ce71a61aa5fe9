"""What a valuation must contain, by brute force."""

from collections.abc import Callable
from datetime import datetime

from strandline.lake.log import LogEntry
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.kinds.timeline.data import DAILY, FIELDS, HISTORY, TRADES, make_declaration
from tests.faults.kinds.timeline.layout import read_model
from tests.faults.kinds.timeline.oracle import facts_of_trades
from tests.faults.kinds.timeline.versions import Told, check_versions
from tests.faults.plain_work import live
from tests.property.timeline_brute import Published, fold_all, last_business_date, value_all
from tests.property.timeline_reach import within
from tests.property.timeline_table import CURRENT, FAILED, REPROCESSING, Head, Table
from tests.property.timeline_world import Date, Inputs

from .data import MARKS, make_inputs
from .worker import COLUMNS, due_date


def check(evidence: Evidence) -> None:
    """L2: the history on every business date that is due, by what the last commit read.

    At rest, by all that was sent; then no key waits for a batch.
    """
    table = check_versions(evidence, DAILY, tuple(COLUMNS), _tell_watermark(evidence))
    if (inputs := evidence.inputs(DAILY)) and (entry := evidence.last_computed(DAILY)):
        history = read_model(inputs[HISTORY], FIELDS)
        folds = {key for key, head in history.heads.items() if head.status != FAILED}
        missing = history.heads.keys() - table.heads.keys()
        require(not missing, "L2 every key of the history is valued or held", missing)
        published = {key: history.values_by_date(key) for key in history.rows if key in folds}
        for key in history.heads.keys() - folds:
            head = table.heads[key]
            require(head.status == FAILED and not head.waits, "L2 a key that fails is held", key, head)
        read = make_inputs(live(inputs[MARKS.dataset]), live(inputs[TRADES.dataset]))
        _check_valued(evidence, entry, {k: table.heads[k] for k in folds}, table, published, read)
    if evidence.at_rest and DAILY not in evidence.frozen and (entry := evidence.last_computed(DAILY)):
        _check_rest(evidence, entry, table)


def _check_rest(evidence: Evidence, entry: LogEntry, table: Table) -> None:
    marked = [key for key, head in table.heads.items() if head.status == REPROCESSING]
    require(not marked, "at rest no key waits for a batch", marked)
    trades = latest(facts_sent(evidence, TRADES), *TRADES.key).values()
    marks = latest(facts_sent(evidence, MARKS), *MARKS.key).values()
    folded = fold_all(make_declaration(scale=1), facts_of_trades(evidence))
    heads = {key: head for key, head in table.heads.items() if key not in folded.failed}
    _check_valued(evidence, entry, heads, table, folded.rows, make_inputs(marks, trades))


def _check_valued(
    evidence: Evidence,
    entry: LogEntry,
    heads: dict[tuple[str, str], Head],
    table: Table,
    history: Published,
    inputs: Inputs,
) -> None:
    assert entry.metadata is not None
    clock = due_date(evidence.world.project.get(DAILY), datetime.fromisoformat(evidence.as_of(DAILY)))
    declaration = make_declaration(evidence.world.configured[entry.metadata.config.hash]["scale"])
    valued = value_all(declaration, history, inputs, clock)
    for key, head in heads.items():
        rows, expected = table.values_by_date(key), valued.rows.get(key, {})
        if head.status == REPROCESSING:
            differ = [on for on in rows.keys() | expected.keys() if rows.get(on) != expected.get(on)]
            marked = all(within(on, head.pending) for on in differ)
            require(marked, "L2 a key that waits is marked on every date that differs", key, head, differ)
            continue
        missing = valued.missing.get(key, set())
        require(rows == expected, "L2 valuation", key, rows, expected)
        require(head.waits == missing, "L2 what a key waits for", key, head, missing)
        require(head.status == (FAILED if missing else CURRENT), "L2 status", key, head)
        if missing:
            told = last_business_date(inputs, min(missing) - 1)
            require(head.watermark == told, "L2 the watermark stands before what is missing", key, head, told)


def _tell_watermark(evidence: Evidence) -> Callable[[Head, LogEntry, LogEntry], Told]:
    """A key that is CURRENT is complete up to the last date that was due.

    The calendar is that of either commit. It may have changed in between without a commit.
    """
    node = evidence.world.project.get(DAILY)

    def tell(head: Head, before: LogEntry, after: LogEntry) -> Told:
        if head.status != CURRENT:
            return head.watermark, head.watermark
        assert before.metadata is not None
        clock = due_date(node, datetime.fromisoformat(before.metadata.as_of))
        told = [on for entry in (before, after) for on in [_last_due(evidence, entry, clock)] if on]
        return (min(told), max(told)) if told else (None, None)

    return tell


def _last_due(evidence: Evidence, entry: LogEntry, clock: Date) -> Date | None:
    if entry.metadata is None or MARKS.dataset not in entry.metadata.inputs:
        return None
    cursor = entry.metadata.inputs[MARKS.dataset]
    if cursor.version < evidence.readable_from(MARKS.dataset):
        return None
    marks = live(evidence.rows(MARKS.dataset, cursor.version))
    return last_business_date(make_inputs(marks, ()), clock)
