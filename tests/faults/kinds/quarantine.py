"""Quarantines: the lines that were refused, each with the reason.

Every stream of the other kinds brings one.
"""

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG
from strandline.model.commits import Operation
from strandline.model.scope import NOTHING, Rows
from tests.faults.evidence import Evidence, require
from tests.faults.plain_work import INGESTED_COLUMN, POSITION_COLUMN, Work, write_rows
from tests.faults.table_log import Row

from .facts import decode, facts_of, facts_sent
from .kind import Kind

_REFUSED = pa.schema(
    [("slug", pa.string()), ("payload", pa.string()), POSITION_COLUMN, INGESTED_COLUMN, (CONFIG, pa.string())]
)


def prepare(work: Work) -> Prepared:
    refused = refused_rows(work)
    if not refused and (not work.full or work.own_version is None):
        return Prepared(write=None, scope=NOTHING, live_rows=work.live_rows)
    return Prepared(
        write=write_rows(Operation.OVERWRITE if work.full else Operation.APPEND, _REFUSED, refused),
        scope=Rows(count=len(refused)),
        rows_written=len(refused),
        live_rows=len(refused) + (0 if work.full else work.live_rows),
        whole=work.full,
    )


def refused_rows(work: Work) -> list[Row]:
    return decode(work, facts_of(work.node))[1]


def check(evidence: Evidence) -> None:
    """L10: each line that is not a fact is once among the refused; at rest all of them are."""
    for stream in evidence.world.streams:
        facts = dict(facts_sent(evidence, stream))
        broken = {place: text for place, text in evidence.lines(stream).items() if place not in facts}
        rows = evidence.by_place(f"{stream.dataset}_quarantine", "L10")
        refused = {place: row["payload"] for place, row in rows.items()}
        require(refused.items() <= broken.items(), "L10 quarantine", stream.dataset, refused)
        if evidence.at_rest:
            missing = broken.keys() - refused.keys()
            require(not missing, "L10 no refused line is missing", stream.dataset, missing)


KIND = Kind(name="quarantine", prepare=prepare, check=check)
