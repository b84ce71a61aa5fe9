"""Jobs: users' SQL or Python over the affected scope, or over everything."""

from strandline.lake.work import Prepared, Work

from .appending import prepare_append
from .keyed import prepare_keyed
from .partitioned import prepare_partitions
from .rows import job_of


def prepare_job(work: Work) -> Prepared:
    """Compute the job over its scope and compare with what is there."""
    job = job_of(work.node)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    if job.unique_key:
        return prepare_append(work, job, full_rows)
    if job.partition is not None:
        return prepare_partitions(work, job, job.partition, full_rows)
    return prepare_keyed(work, job, full_rows)
