"""Quarantines: the lines that were refused, each with the reason."""

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG
from strandline.model.commits import Operation
from tests.faults.plain_work import INGESTED_COLUMN, POSITION_COLUMN, Work, write_rows
from tests.faults.table_log import Row

from .facts import decode, facts_of
from .kind import Kind

_REFUSED = pa.schema(
    [("slug", pa.string()), ("payload", pa.string()), POSITION_COLUMN, INGESTED_COLUMN, (CONFIG, pa.string())]
)


def prepare(work: Work) -> Prepared:
    refused = refused_rows(work)
    if not refused and (not work.full or work.own_version is None):
        return Prepared(write=None, live_rows=work.live_rows)
    return Prepared(
        write=write_rows(Operation.OVERWRITE if work.full else Operation.APPEND, _REFUSED, refused),
        rows_written=len(refused),
        live_rows=len(refused) + (0 if work.full else work.live_rows),
        whole=work.full,
    )


def refused_rows(work: Work) -> list[Row]:
    return decode(work, facts_of(work.node))[1]


KIND = Kind(name="quarantine", prepare=prepare)
