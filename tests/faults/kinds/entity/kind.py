"""What the fault suite knows of entities."""

from tests.faults.kinds.kind import Kind

from . import data, happenings, oracle, worker

KIND = Kind(
    name="entity",
    prepare=worker.prepare,
    check=oracle.check,
    streams=(data.DEVICES, data.READINGS),
    switches={"least": 1, "loud": False},
    project=data.declare,
    begin=data.begin,
    ground=data.ground,
    story=happenings.STORY,
    after_cleaning=happenings.AFTER_CLEANING,
    happenings=happenings.HAPPENINGS,
    requests=happenings.REQUESTS,
    news=happenings.NEWS,
    backfills=("room", "house", "device"),
    selections=("registry device room", "room+"),
)
