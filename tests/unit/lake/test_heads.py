"""What the heads in a table of a timeline say about its keys, in tables that delta-rs wrote."""

from pathlib import Path

from strandline.lake.heads import count_heads, count_heads_by_date, find_recorded
from strandline.lake.table import get_table
from strandline.model.commits import Operation
from strandline.model.key_states import HeadCount
from strandline.model.timeline import KeyStatus
from tests.unit.cli.timeline_builder import WEEKDAYS, at, head, make_portfolios, on, row, superseded

KEY = ("portfolio_id", "security_id")
VALUED, FOLDED = "daily_position_snapshots", "position_history"


def test_keys_are_counted_by_what_their_heads_say(tmp_path: Path) -> None:
    """A key may be NULL, a key may have lost its last fact, and superseded rows are not keys."""
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS)
    aapl = row("P1 AAPL", on(8))
    portfolios.commit(FOLDED, [aapl, row("P1 AAPL", on(10)), row("P1 -", on(9)), row("P2 -", on(9))])
    pending = [{"start": on(8), "end": None}]
    marked = head("P1 AAPL", "REPROCESSING", pending=pending, waits=[on(9)], watermark_on=on(10))
    heads = [marked, head("P1 -"), head("P2 -"), head("P3 -", "FAILED")]
    portfolios.commit(VALUED, [*heads, aapl, superseded(aapl, 1, at(12))])
    table, history = get_table(portfolios.table(VALUED)), get_table(portfolios.table(FOLDED))

    current = HeadCount(status=KeyStatus.CURRENT, watermark_on=None, keys=2)
    failed = HeadCount(status=KeyStatus.FAILED, watermark_on=None, keys=1)
    waiting = HeadCount(status=KeyStatus.REPROCESSING, watermark_on=on(10), keys=1)
    assert set(count_heads(table)) == {current, failed, waiting}
    assert set(count_heads_by_date(table, history, KEY)) == {
        HeadCount(status=KeyStatus.CURRENT, watermark_on=None, keys=2, first_on=on(9)),
        failed,
        HeadCount(
            status=KeyStatus.REPROCESSING,
            watermark_on=on(10),
            keys=1,
            waits=(on(9),),
            pending=((on(8), None),),
            first_on=on(8),
        ),
    }


def test_a_version_was_computed_at_the_as_of_of_the_last_commit_that_computed_something(
    tmp_path: Path,
) -> None:
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS)
    portfolios.commit(VALUED, [head("P1 AAPL")], as_of=at(10))
    portfolios.commit(VALUED, [], as_of=at(11))
    portfolios.commit(VALUED, [], as_of=at(12), operation=Operation.COMPACT)

    recorded = [find_recorded(portfolios.table(VALUED), version) for version in (0, 1, 2)]

    assert [r.as_of for r in recorded if r] == [at(10), at(11), at(11)]
    assert find_recorded(portfolios.table(FOLDED), 0) is None
