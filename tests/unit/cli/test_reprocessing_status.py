"""`query --output json` says whether outputs of timelines, and what is computed from them, are current."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from strandline.model.commits import Operation
from tests.unit.cli.builders import printed
from tests.unit.cli.timeline_builder import (
    TOTALS,
    WEEKDAYS,
    Portfolios,
    head,
    make_portfolios,
    on,
    row,
    transaction,
)

Output = pytest.CaptureFixture[str]
VALUED, FOLDED = "daily_position_snapshots", "position_history"
SUMS = pa.schema([("portfolio_id", pa.string()), ("date", pa.date32()), ("_deleted", pa.bool_())])
PRICES = pa.schema([("security_id", pa.string()), ("price_on", pa.date32()), ("_deleted", pa.bool_())])
SUM = {"portfolio_id": "P1", "date": on(8), "_deleted": False}


@pytest.fixture
def portfolios(tmp_path: Path) -> Portfolios:
    """Everything was read by everyone."""
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS, jobs=TOTALS)
    portfolios.commit("transactions", [transaction("t1", "P1 AAPL", on(8), 1)])
    portfolios.commit("market_prices", [], schema=PRICES)
    portfolios.commit(FOLDED, [row("P1 AAPL", on(8)), head("P1 AAPL", watermark_on=on(8))])
    portfolios.commit(VALUED, [row("P1 AAPL", on(8)), head("P1 AAPL")])
    portfolios.commit("totals", [SUM], schema=SUMS)
    return portfolios


def settle(portfolios: Portfolios, *names: str) -> None:
    """Nodes that read what is there now, without a change of their rows."""
    for name in names:
        schema = SUMS if name == "totals" else None
        portfolios.commit(name, [], schema=schema, operation=Operation.COUNTS)


def read(portfolios: Portfolios, name: str, capsys: Output, *words: str) -> dict[str, str]:
    capsys.readouterr()
    assert portfolios.call("query", f"SELECT * FROM {name}", "--output", "json", *words) == 0
    status: dict[str, str] = printed(capsys).get("reprocessing_status", {})
    return status


@pytest.mark.parametrize(
    ("name", "dataset"),
    [(FOLDED, FOLDED), (VALUED, VALUED), ("totals", "totals"), ("positions_state", VALUED)],
)
def test_what_everyone_has_read_is_current(
    portfolios: Portfolios, name: str, dataset: str, capsys: Output
) -> None:
    assert read(portfolios, name, capsys) == {dataset: "CURRENT"}


def test_what_no_timeline_computes_has_no_status(portfolios: Portfolios, capsys: Output) -> None:
    assert read(portfolios, "transactions", capsys) == {}


def test_keys_that_wait_for_a_batch_are_in_progress_downstream_too(
    portfolios: Portfolios, capsys: Output
) -> None:
    failed = head("P1 NVDA", "FAILED")
    portfolios.commit(VALUED, [head("P1 MSFT", "REPROCESSING", watermark_on=on(8)), failed])
    settle(portfolios, "totals")

    assert read(portfolios, VALUED, capsys) == {VALUED: "IN_PROGRESS"}
    assert read(portfolios, "totals", capsys) == {"totals": "IN_PROGRESS"}
    assert read(portfolios, FOLDED, capsys) == {FOLDED: "CURRENT"}


def test_a_failed_key_is_told_of_everything_computed_from_it(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit(FOLDED, [head("P1 NVDA", "FAILED")])
    settle(portfolios, VALUED, "totals")

    for name in (FOLDED, VALUED, "totals"):
        assert read(portfolios, name, capsys) == {name: "FAILED"}


@pytest.mark.parametrize(
    ("changed", "behind"),
    [
        ("transactions", {FOLDED, VALUED, "totals"}),
        ("market_prices", {VALUED, "totals"}),
        (VALUED, {"totals"}),
    ],
)
def test_a_change_that_is_not_published_yet_is_in_progress_where_it_will_arrive(
    portfolios: Portfolios, changed: str, behind: set[str], capsys: Output
) -> None:
    rows = {
        "transactions": [transaction("t2", "P1 AAPL", on(9), 1)],
        "market_prices": [{"security_id": "AAPL", "price_on": on(9), "_deleted": False}],
        VALUED: [row("P1 AAPL", on(9))],
    }
    portfolios.commit(changed, rows[changed], schema=PRICES if changed == "market_prices" else None)

    for name in (FOLDED, VALUED, "totals"):
        expected = "IN_PROGRESS" if name in behind else "CURRENT"
        assert read(portfolios, name, capsys) == {name: expected}, name


def test_a_compaction_changes_nothing(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit("transactions", [], operation=Operation.COMPACT)

    assert read(portfolios, VALUED, capsys) == {VALUED: "CURRENT"}


def test_the_past_has_the_status_of_its_heads(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit(VALUED, [head("P1 MSFT", "REPROCESSING")])
    marked = datetime.now(UTC).isoformat()

    assert read(portfolios, VALUED, capsys, "--known-at", f"{VALUED}=0") == {VALUED: "CURRENT"}
    assert read(portfolios, VALUED, capsys, "--known-at", f"{VALUED}=1") == {VALUED: "IN_PROGRESS"}
    assert read(portfolios, VALUED, capsys, "--known-at", marked) == {VALUED: "IN_PROGRESS"}


def test_several_datasets_have_a_status_each(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit(VALUED, [head("P1 MSFT", "REPROCESSING")])
    both = f"{FOLDED} h JOIN {VALUED} v ON h.date = v.date"

    assert read(portfolios, both, capsys) == {FOLDED: "CURRENT", VALUED: "IN_PROGRESS"}
