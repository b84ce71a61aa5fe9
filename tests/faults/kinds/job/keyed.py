"""Keyed jobs: the rows of the keys that a change touches are computed again and replaced."""

from strandline.lake.work import Prepared
from tests.faults.plain_work import Work, compare, live, values_of, write_whole

from .results import find_affected, job_of, keyed_rows, schema_of


def prepare(work: Work) -> Prepared:
    """Compute the job over the keys that changed, or everything, and write the keys that differ."""
    job = job_of(work.node)
    own = None if work.task.overwrite else work.read_own()
    schema = schema_of(job)
    if own is None:
        return write_whole(schema, keyed_rows(work, job, None))
    if work.full:
        return compare(work, schema, keyed_rows(work, job, None), live(own), bury=True)
    scope = find_affected(work, job)
    old = [row for row in live(own) if values_of(row, job.key) in scope]
    return compare(work, schema, keyed_rows(work, job, scope), old, bury=True)
