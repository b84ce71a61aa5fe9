"""`query` over the datasets beside a timeline, whose tables delta-rs wrote."""

from pathlib import Path

import pytest

from tests.unit.cli.builders import printed
from tests.unit.cli.timeline_builder import (
    WEEKDAYS,
    Portfolios,
    at,
    business_date,
    head,
    make_portfolios,
    on,
    row,
    superseded,
)

STATES = "SELECT security_id, watermark_on, status FROM positions_state ORDER BY security_id"
HEADS = [
    head("P1 AAPL"),
    head("P1 MSFT", "FAILED"),
    head("P1 NVDA", "FAILED", watermark_on=on(8)),
    head("P1 TSLA", "REPROCESSING", watermark_on=on(10)),
]


def read_states(portfolios: Portfolios, capsys: pytest.CaptureFixture[str]) -> list[list[object]]:
    assert portfolios.call("query", STATES, "--output", "json") == 0
    rows: list[list[object]] = printed(capsys)["rows"]
    return rows


def test_a_key_without_a_watermark_is_complete_up_to_the_last_business_date_due(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portfolios = make_portfolios(tmp_path)
    dates = [business_date(on(d), deleted=d == 12) for d in (8, 9, 10, 11, 12, 15)]
    portfolios.commit("business_dates", dates)
    portfolios.commit("daily_position_snapshots", HEADS, as_of=at(12))

    rows = read_states(portfolios, capsys)

    assert rows == [
        ["AAPL", "2024-01-11", "CURRENT"],
        ["MSFT", None, "FAILED"],
        ["NVDA", "2024-01-08", "FAILED"],
        ["TSLA", "2024-01-10", "REPROCESSING"],
    ]


def test_a_calendar_that_grew_later_moves_no_watermark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portfolios = make_portfolios(tmp_path)
    portfolios.commit("business_dates", [business_date(on(10))])
    portfolios.commit("daily_position_snapshots", [head("P1 AAPL")], as_of=at(12))
    portfolios.commit("business_dates", [business_date(on(11))])

    assert read_states(portfolios, capsys) == [["AAPL", "2024-01-10", "CURRENT"]]


@pytest.mark.parametrize(
    ("as_of", "watermark"),
    [
        (at(12, 16), "2024-01-11"),
        (at(12, 17), "2024-01-12"),
        (at(14, 23), "2024-01-12"),
        (at(15, 17), "2024-01-15"),
    ],
    ids=["Friday before it is due", "Friday", "Sunday", "Monday"],
)
def test_without_a_calendar_business_dates_are_weekdays(
    as_of: object, watermark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS)
    portfolios.commit("daily_position_snapshots", [head("P1 AAPL")], as_of=as_of)  # type: ignore[arg-type]

    assert read_states(portfolios, capsys) == [["AAPL", watermark, "CURRENT"]]


def test_superseded_rows_have_the_epoch_that_replaced_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portfolios = make_portfolios(tmp_path, valued="")
    published = row("P1 AAPL", on(8), 5)
    portfolios.commit("position_history", [superseded(published, 1, at(9)), head("P1 AAPL", epoch=1)])

    portfolios.call("query", "SELECT * FROM positions_epochs", "--output", "json")

    answer = printed(capsys)
    assert answer["columns"][-3:] == ["epoch", "superseded_by", "superseded_at"]
    assert answer["rows"][0][-3:] == [0, 1, "2024-01-09T17:00:00.000000Z"]
