"""Appending jobs: rows whose unique key is new are inserted, and what was published stays."""

from collections.abc import Sequence

from strandline.lake.work import Prepared
from strandline.model.columns import KEY
from strandline.model.commits import Operation
from strandline.model.project import Job
from tests.faults.plain_work import Key, Work, key_hash, row_hash, values_of, write_rows, write_whole
from tests.faults.table_log import Row

from .results import find_affected, job_of, keyed_rows, schema_of


def prepare(work: Work) -> Prepared:
    """Insert the rows whose unique key is new; what was published stays."""
    job = job_of(work.node)
    own = work.read_own()
    scope = None if work.full or own is None else find_affected(work, job)
    schema = schema_of(job)
    rows = [{**row, KEY: key_hash(values_of(row, job.unique_key))} for row in keyed_rows(work, job, scope)]
    if own is None or work.task.overwrite:
        kept = published(own or [], job)
        return write_whole(schema, [*kept, *only_new(rows, kept, job.unique_key)])
    new = only_new(rows, own, job.unique_key)
    said = new or (work.full and work.stale)
    write = write_rows(Operation.INSERT_NEW if new else Operation.COUNTS, schema, new) if said else None
    return Prepared(write=write, rows_written=len(new), live_rows=work.live_rows + len(new), whole=work.full)


def published(own: Sequence[Row], job: Job) -> list[Row]:
    """What a table that is written anew keeps: everything it ever had."""
    return [{**row, KEY: key_hash(values_of(row, job.unique_key))} for row in own]


def only_new(rows: Sequence[Row], own: Sequence[Row], unique_key: Sequence[str]) -> list[Row]:
    """One row a unique key that is not there yet, null-safe."""
    there = {values_of(row, unique_key) for row in own}
    first: dict[Key, Row] = {}
    for row in sorted(rows, key=row_hash):
        first.setdefault(values_of(row, unique_key), row)
    return [row for key, row in first.items() if key not in there]
