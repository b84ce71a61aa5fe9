"""Jobs: users' SQL or Python over the affected scope, or over everything."""

from pyspark.sql import functions as F

from strandline.lake.work import Expected, Prepared, Work
from strandline.model.columns import DELETED

from .appending import prepare_append
from .keyed import prepare_keyed
from .oracle import expect_job
from .partitioned import prepare_partitions
from .rows import job_of


def prepare(work: Work) -> Prepared:
    """Compute the job over its scope and compare with what is published."""
    job = job_of(work.node)
    full_rows = sum(work.input_rows.get(i.dataset, 0) for i in work.node.inputs)
    if job.unique_key:
        return prepare_append(work, job, full_rows)
    if job.partition is not None:
        return prepare_partitions(work, job, job.partition, full_rows)
    return prepare_keyed(work, job, full_rows)


def expect(work: Work) -> Expected:
    job, own = job_of(work.node), work.read_own()
    assert own is not None
    rows = expect_job(work, job)
    if job.unique_key:
        return Expected(rows=rows, published=own, sampled_by=job.unique_key, unique_key=job.unique_key)
    by_key = job.key and set(job.key) <= set(rows.columns)
    return Expected(
        rows=rows, published=own.where(~F.col(DELETED)), sampled_by=job.key if by_key else rows.columns
    )
