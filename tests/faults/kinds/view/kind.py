"""What the fault suite knows of views."""

from typing import Any

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG, DELETED, KEY
from strandline.model.condition_truth import is_true
from strandline.model.publishing import View
from tests.faults.evidence import Evidence, only, require
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.kind import Kind, Switches
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.plain_work import KEYED_COLUMNS, Work, compare, declared, key_hash, write_whole
from tests.faults.table_log import Row

from .data import (
    AFTER_CLEANING,
    HAPPENINGS,
    STORY,
    TRADES,
    VIEW,
    begin,
    ground,
    send_news,
)

_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("quantity", pa.int64()),
        ("at", pa.int64()),
        ("op", pa.string()),
        ("twice", pa.int64()),
        *KEYED_COLUMNS,
    ]
)


def prepare(work: Work) -> Prepared:
    """The rows of changed keys, or all, compared with what is published."""
    view = work.node.definition
    assert isinstance(view, View)
    rows = [_make(work, row) for row in work.read_live(view.dataset) if is_true(view.where, row)]
    own = None if work.task.overwrite else work.read_own()
    if own is None:
        return write_whole(_SCHEMA, rows)
    old = [row for row in own if not row[DELETED]]
    if not work.full:
        keys = {key_hash((row["id"],)) for _, row in work.read_changes(view.dataset)}
        rows, old = ([row for row in side if row[KEY] in keys] for side in (rows, old))
    return compare(work, _SCHEMA, rows, old, bury=True)


def _make(work: Work, row: Row) -> Row:
    twice = None if row["quantity"] is None else 2 * row["quantity"]
    mine = {KEY: key_hash((row["id"],)), DELETED: False, CONFIG: work.config.hash}
    return {**declared(row), "twice": twice, **mine}


def check(evidence: Evidence) -> None:
    """L2: the rows of the trades that the last commit read, and at rest of all that were sent."""
    computed = evidence.last_computed(VIEW)
    if computed is None or computed.metadata is None:
        return
    if inputs := evidence.inputs(VIEW):
        record = evidence.nodes.get(VIEW)
        # A catalog that knows the commit may know more: an edit that changes no row is not committed.
        is_known = record is not None and record.configs and record.table_version >= computed.version
        config = record.configs[-1] if record and is_known else computed.metadata.config
        least = evidence.world.configured[config.hash]["least"]
        live = [only(row, TRADES.columns) for row in inputs["trade"] if not row[DELETED]]
        _compare(evidence, {row["id"]: row for row in live}, least)
    if evidence.at_rest:
        sent = latest(facts_sent(evidence, TRADES), "id")
        _compare(evidence, {row["id"]: row for row in sent.values()}, evidence.world.switches["least"])


def _compare(evidence: Evidence, trades: dict[str, Row], least: int) -> None:
    seen = {row["id"]: only(row, (*TRADES.columns, "twice")) for row in evidence.live(VIEW)}
    expected: dict[str, Any] = {
        id_: {**row, "twice": 2 * row["quantity"]}
        for id_, row in trades.items()
        if row["quantity"] is not None and row["quantity"] >= least
    }
    require(seen == expected, f"L2 {VIEW}", seen, expected)


def _declare(switches: Switches) -> dict[str, str]:
    where = f"{{quantity: {{_gte: {switches['least']}}}}}"
    return {"views": f'{VIEW}: {{from: trade, where: {where}, calculated: {{twice: "2 * quantity"}}}}'}


KIND = Kind(
    name="view",
    prepare=prepare,
    check=check,
    streams=(TRADES,),
    switches={"least": 5},
    project=_declare,
    begin=begin,
    ground=ground,
    story=STORY,
    after_cleaning=AFTER_CLEANING,
    happenings=HAPPENINGS,
    news=(send_news,),
    backfills=("trade", VIEW),
)
