"""What the fault suite knows of jobs, whichever way they write."""

from strandline.lake.work import Prepared
from tests.faults.kinds.kind import Kind
from tests.faults.plain_work import Work

from . import appending, keyed, partitions
from .results import job_of


def prepare(work: Work) -> Prepared:
    job = job_of(work.node)
    if job.unique_key:
        return appending.prepare(work)
    return keyed.prepare(work) if job.partition is None else partitions.prepare(work, job.partition)


KIND = Kind(name="job", prepare=prepare)
