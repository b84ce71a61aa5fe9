"""What the fault suite knows of snapshots."""

from tests.faults.kinds.kind import Kind

from . import data, happenings, oracle, worker

KIND = Kind(
    name="snapshot",
    prepare=worker.prepare,
    check=oracle.check,
    streams=(data.ITEMS, data.RATES),
    begin=data.begin,
    ground=data.send_first_items,
    story=happenings.STORY,
    after_cleaning=happenings.AFTER_CLEANING,
    happenings=happenings.HAPPENINGS,
    news=happenings.NEWS,
    backfills=("item",),
    selections=("events item+",),
)
