"""The plain worker of timelines: the model of the fold over the rows of tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.errors import WorkError
from tests.faults.plain_work import Work, live
from tests.faults.table_log import Row
from tests.property.timeline_fold import FoldNode
from tests.property.timeline_reach import FoldVersion
from tests.property.timeline_table import FAILED
from tests.property.timeline_world import Fact, Key

from .data import FIELDS, TRADES, make_declaration
from .layout import Layout, find_number, key_of, read_model, read_published

COLUMNS = {"quantity": pa.int64(), "book": pa.string()}


def prepare(work: Work) -> Prepared:
    """Fold the keys that a change touches, and compare with what is published."""
    own = read_published(work)
    before = read_model(own or (), FIELDS)
    facts = read_facts(work.read_live(TRADES.dataset))
    node = FoldNode(make_declaration(scale=1))
    known = {} if own is None or work.full else read_facts(live(work.read_before(TRADES.dataset)))
    node.facts, node.versions = known, [FoldVersion(table=before, facts=known)]
    node.run(facts, everything=work.full)
    after = node.versions[-1].table
    layout = Layout(columns=COLUMNS, work=work, as_of=work.desk.as_of)
    touched = {fact.key for name, fact in (known.items() ^ facts.items())}
    failed = [key for key in touched if key in after.heads and after.heads[key].status == FAILED]
    return _tell(layout.prepare(own, before, after, records=False), failed)


def read_facts(rows: Iterable[Row]) -> dict[str, Fact]:
    return {
        row["trade"]: Fact(
            key=key_of(row), on=find_number(row["traded_on"]), rank=row["at"], amount=row["amount"]
        )
        for row in rows
    }


def _tell(prepared: Prepared, failed: Sequence[Key]) -> Prepared:
    """A task in which a key fails, or fails again, has failed, although what it published stands."""
    if not failed:
        return prepared
    refused = WorkError(f"{failed} could not be folded.", remedy="Correct the facts.", slug="fold-failed")
    return replace(prepared, task_counts={"failed": len(failed)}, refused=refused)
