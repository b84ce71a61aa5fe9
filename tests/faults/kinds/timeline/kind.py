"""What the fault suite knows of timelines."""

from tests.faults.kinds.kind import Kind

from . import data, happenings, oracle, worker

KIND = Kind(
    name="timeline",
    prepare=worker.prepare,
    check=oracle.check,
    streams=(data.TRADES,),
    switches={"scale": 1},
    project=data.declare,
    files={"folds.py": data.FOLD},
    begin=data.begin,
    ground=data.ground,
    story=happenings.STORY,
    happenings=happenings.HAPPENINGS,
    news=happenings.NEWS,
    backfills=("stock", "trade"),
    selections=("fills trade stock_history",),
)
