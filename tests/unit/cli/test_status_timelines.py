"""What `status` tells about timelines, over tables that delta-rs wrote."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from strandline.app import status as app_status
from strandline.catalog import finish_run, record_task, start_run
from strandline.model.key_states import KeysStatus
from strandline.model.plan import Cause, Status, Strategy, TaskResult
from strandline.model.scope import EVERYTHING
from strandline.model.statuses import TimelineStatus
from strandline.pages.prometheus import make_timeline_metrics, render_metrics
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
)

Output = pytest.CaptureFixture[str]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Tuesday, 17:00 UTC and one hour: 19:00 in Berlin, where dates are due at 18:00."""
    instant = datetime(2024, 1, 16, 18, tzinfo=UTC)
    monkeypatch.setattr(app_status, "now", lambda: instant)
    return instant


@pytest.fixture
def portfolios(tmp_path: Path, now: datetime) -> Portfolios:
    """Valued up to Friday, 12 January."""
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS)
    portfolios.commit("transactions", [])
    portfolios.commit("position_history", [row(f"P1 {s}", on(8)) for s in ("AAPL", "MSFT", "NVDA")])
    portfolios.commit("daily_position_snapshots", [head("P1 AAPL")], as_of=at(12))
    return portfolios


def read_dataset(portfolios: Portfolios, name: str, capsys: Output) -> dict[str, object]:
    capsys.readouterr()
    assert portfolios.call("status", "--output", "json") == 0
    (dataset,) = [d for d in printed(capsys)["datasets"] if d["dataset"] == name]
    found: dict[str, object] = dataset
    return found


def read_metrics(portfolios: Portfolios, capsys: Output) -> dict[str, str]:
    capsys.readouterr()
    assert portfolios.call("status", "--output", "prometheus") == 0
    lines = capsys.readouterr().out.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(name.endswith('{timeline="positions"}') for name in values)
    return {name.partition("{")[0].removeprefix("strandline_"): value for name, value in values.items()}


def test_keys_are_counted_by_status_with_the_lowest_watermark(portfolios: Portfolios, capsys: Output) -> None:
    heads = [
        head("P1 MSFT", "REPROCESSING", watermark_on=on(12)),
        head("P1 NVDA", "FAILED", watermark_on=on(9)),
        head("P1 TSLA", "FAILED"),
    ]
    portfolios.commit("daily_position_snapshots", heads, as_of=at(12))

    status = read_dataset(portfolios, "daily_position_snapshots", capsys)

    assert status["keys"] == {"current": 1, "reprocessing": 1, "failed": 2}
    assert status["watermark_on"] == "2024-01-09"
    portfolios.call("status", "daily_position_snapshots")
    shown = " ".join(capsys.readouterr().out.split())
    assert "4 keys: 1 current, 1 reprocessing, 2 failed;" in shown
    assert "complete up to 2024-01-09" in shown


def test_a_history_is_complete_up_to_the_last_date_of_its_facts(
    portfolios: Portfolios, capsys: Output
) -> None:
    heads = [head("P1 AAPL", watermark_on=on(8)), head("P1 MSFT", watermark_on=on(10))]
    portfolios.commit("position_history", heads)

    status = read_dataset(portfolios, "position_history", capsys)

    assert status["keys"] == {"current": 2, "reprocessing": 0, "failed": 0}
    assert status["watermark_on"] == "2024-01-08"


def test_only_outputs_of_timelines_that_were_built_have_keys(tmp_path: Path, capsys: Output) -> None:
    portfolios = make_portfolios(tmp_path)
    portfolios.commit("transactions", [])

    assert "keys" not in read_dataset(portfolios, "transactions", capsys)
    assert "keys" not in read_dataset(portfolios, "daily_position_snapshots", capsys)


def test_metrics_have_help_and_type_and_a_line_per_timeline(portfolios: Portfolios, capsys: Output) -> None:
    capsys.readouterr()
    portfolios.call("status", "--output", "prometheus")

    lines = capsys.readouterr().out.splitlines()
    names = [
        "strandline_reprocessing_active_keys_total",
        "strandline_snapshot_lag_seconds",
        "strandline_epoch_mismatch_dropped_total",
        "strandline_scheduler_gap_days",
    ]
    types = ["gauge", "gauge", "counter", "gauge"]
    assert len(lines) == 12
    for name, kind, block in zip(names, types, (lines[i : i + 3] for i in range(0, 12, 3)), strict=True):
        assert block[0].startswith(f"# HELP {name} ")
        assert block[1] == f"# TYPE {name} {kind}"
        assert block[2].startswith(f'{name}{{timeline="positions"}} ')


def test_a_timeline_is_late_since_its_next_business_date_was_due(
    portfolios: Portfolios, capsys: Output
) -> None:
    """Monday was due 25 hours ago, Tuesday one hour ago."""
    metrics = read_metrics(portfolios, capsys)

    assert metrics == {
        "reprocessing_active_keys_total": "0",
        "snapshot_lag_seconds": str(25 * 3600),
        "epoch_mismatch_dropped_total": "0",
        "scheduler_gap_days": "2",
    }


def test_a_timeline_that_is_up_to_date_is_not_late(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit("daily_position_snapshots", [head("P1 MSFT")], as_of=at(16))

    metrics = read_metrics(portfolios, capsys)

    assert (metrics["snapshot_lag_seconds"], metrics["scheduler_gap_days"]) == ("0", "0")


def test_a_failed_key_is_late_and_leaves_no_gap(portfolios: Portfolios, capsys: Output) -> None:
    failed = head("P1 MSFT", "FAILED", watermark_on=on(15))
    marked = head("P1 NVDA", "REPROCESSING", watermark_on=on(16))
    portfolios.commit("daily_position_snapshots", [failed, marked], as_of=at(16))

    metrics = read_metrics(portfolios, capsys)

    assert metrics["reprocessing_active_keys_total"] == "1"
    assert metrics["snapshot_lag_seconds"] == "3600"
    assert metrics["scheduler_gap_days"] == "0"


def test_gaps_are_counted_in_the_dates_of_the_calendar(tmp_path: Path, now: datetime, capsys: Output) -> None:
    portfolios = make_portfolios(tmp_path)
    portfolios.commit("business_dates", [business_date(on(d), deleted=d == 15) for d in (12, 15, 16, 17)])
    portfolios.commit("daily_position_snapshots", [head("P1 AAPL")], as_of=at(12))

    metrics = read_metrics(portfolios, capsys)

    assert (metrics["snapshot_lag_seconds"], metrics["scheduler_gap_days"]) == ("3600", "1")


def test_dropped_writes_of_both_outputs_are_counted(portfolios: Portfolios, capsys: Output) -> None:
    catalog = portfolios.open_catalog()
    start_run(catalog, "run-2", "", "")
    fenced = TaskResult(
        node="position_history",
        kind=portfolios.project.get("position_history").kind,
        cause=Cause.NEW_INPUT,
        strategy=Strategy.RECOMPUTE,
        reason="",
        scope=EVERYTHING,
        status=Status.FENCED,
        input_versions={},
        counts={},
        slug="fenced",
    )
    for node, status in (
        ("position_history", Status.FENCED),
        ("position_history", Status.DONE),
        ("daily_position_snapshots", Status.FENCED),
        ("transactions", Status.FENCED),
    ):
        record_task(catalog, "run-2", replace(fenced, node=node, status=status))
    finish_run(catalog, "run-2", "done")
    catalog.close()

    assert read_metrics(portfolios, capsys)["epoch_mismatch_dropped_total"] == "2"


def test_a_timeline_without_a_valuation_or_a_table_is_not_late(tmp_path: Path, capsys: Output) -> None:
    portfolios = make_portfolios(tmp_path, valued="")

    assert set(read_metrics(portfolios, capsys).values()) == {"0"}

    portfolios.commit("position_history", [head("P1 AAPL", watermark_on=on(8))])

    assert set(read_metrics(portfolios, capsys).values()) == {"0"}


def test_the_name_of_a_timeline_is_escaped() -> None:
    status = TimelineStatus(timeline='a"b\\c\nd', dataset="x", keys=KeysStatus(), lag_seconds=1.5)

    lines = render_metrics(make_timeline_metrics([status])).splitlines()

    assert lines[5] == 'strandline_snapshot_lag_seconds{timeline="a\\"b\\\\c\\nd"} 1.500'


def test_another_name_leaves_the_timeline_out(portfolios: Portfolios, capsys: Output) -> None:
    capsys.readouterr()
    portfolios.call("status", "transactions", "--output", "prometheus")

    assert "{timeline=" not in capsys.readouterr().out


def test_the_page_has_a_bar_for_each_business_date_that_is_due(
    portfolios: Portfolios, capsys: Output
) -> None:
    """Keys begin on Monday the 8th, are valued up to Friday, and Monday and Tuesday are due."""
    heads = [
        head("P1 MSFT", "REPROCESSING", pending=[{"start": on(9), "end": on(11)}], watermark_on=on(12)),
        head("P1 NVDA", "FAILED", watermark_on=on(11), waits=[on(12)]),
    ]
    portfolios.commit("daily_position_snapshots", heads, as_of=at(12))
    capsys.readouterr()

    assert portfolios.call("status", "--output", "html") == 0

    titles = re.findall(r"<title>(2024[^<]*)</title>", capsys.readouterr().out)
    assert titles == [
        "2024-01-08: 3 keys: 3 current",
        "2024-01-09: 3 keys: 1 reprocessing, 2 current",
        "2024-01-10: 3 keys: 1 reprocessing, 2 current",
        "2024-01-11: 3 keys: 3 current",
        "2024-01-12: 3 keys: 1 failed, 2 current",
        "2024-01-15: 3 keys: 3 not valued yet",
        "2024-01-16: 3 keys: 3 not valued yet",
    ]
