"""What the fault suite knows of jobs, whichever way they write."""

from strandline.lake.work import Prepared
from tests.faults.evidence import Evidence
from tests.faults.kinds.kind import Kind, Switches
from tests.faults.plain_work import Work

from . import appending, keyed, partitions
from .results import job_of


def prepare(work: Work) -> Prepared:
    job = job_of(work.node)
    if job.unique_key:
        return appending.prepare(work)
    return keyed.prepare(work) if job.partition is None else partitions.prepare(work, job.partition)


def check(evidence: Evidence) -> None:
    for shape in (keyed, appending, partitions):
        shape.check(evidence)


def declare(switches: Switches) -> dict[str, str]:
    return {"jobs": "".join(shape.declare(switches) for shape in (keyed, appending, partitions))}


KIND = Kind(
    name="job",
    prepare=prepare,
    check=check,
    switches={"factor": 1, "colours": True, "unique": "name, price"},
    project=declare,
    story=(*keyed.STORY, *partitions.STORY),
    after_cleaning=(*appending.AFTER_CLEANING, *keyed.AFTER_CLEANING),
    happenings=(*keyed.HAPPENINGS, *appending.HAPPENINGS),
    requests=(*keyed.REQUESTS, *partitions.REQUESTS),
    backfills=("names", "told", "stretches"),
    selections=("rates rate names", "names+"),
)
