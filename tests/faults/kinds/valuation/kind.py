"""What the fault suite knows of valuations."""

from tests.faults.kinds.kind import Kind

from . import data, happenings, oracle, worker

KIND = Kind(
    name="valuation",
    prepare=worker.prepare,
    check=oracle.check,
    streams=(data.MARKS,),
    project=data.declare,
    begin=data.begin,
    ground=data.ground,
    story=happenings.STORY,
    after_cleaning=happenings.AFTER_CLEANING,
    happenings=happenings.HAPPENINGS,
    requests=happenings.REQUESTS,
    news=happenings.NEWS,
    backfills=("stock_daily",),
    selections=("quotes mark stock_daily", "stock+"),
)
