"""What the fault suite knows of chains."""

from tests.faults.kinds.kind import Kind

from . import data, happenings, oracle, worker

KIND = Kind(
    name="chain",
    prepare=worker.prepare,
    check=oracle.check,
    streams=(data.BLOCKS,),
    project=data.declare,
    begin=data.begin,
    ground=data.ground,
    story=happenings.STORY,
    happenings=happenings.HAPPENINGS,
    news=happenings.NEWS,
    backfills=("main",),
    selections=("headers block main",),
)
