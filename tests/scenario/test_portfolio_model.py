"""The messages, the fold and the model of examples/portfolio, without the engine's workers.

The model follows the commands of the README. The example's fold, folded by the engine's own loop, must agree
with it after each delivery.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.play import EXAMPLES
from strandline.compute.timeline.folding import Day, FoldedDay, FoldError, fold_key
from strandline.model.columns import ColumnType, find_type
from strandline.model.typed_values import parse_instant
from tests.scenario.portfolio_model import (
    FACTS,
    Position,
    Row,
    State,
    Track,
    after_run,
    positions_of,
)
from tests.scenario.story import commands_of, copy_project

COMMANDS = commands_of("portfolio")
DELIVERIES = ("1", "2", "3", "4", "4 later", "5", "5 later", "6", "6 later")


@dataclass
class Told:
    """The states of the model, and what the generator printed and wrote."""

    states: dict[str, State]
    """By delivery. Those of runs with `--batches` are as if all batches had been published."""
    printed: dict[str, tuple[str, ...]]
    written: dict[Path, bytes]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Runs the generator as the README does, and the model instead of `strandline run`."""
    project = copy_project("portfolio", tmp_path_factory.mktemp("model"))
    told, state, delivery = Told({}, {}, {}), State(), ""
    for command in COMMANDS:
        match command.words:
            case ["python", "generate.py", *arguments]:
                delivery = " ".join(arguments)
                told.printed[delivery] = tuple(generate(project, *arguments).splitlines())
            case ["strandline", "run", "--as-of", as_of, *options]:
                reached = after_run(state, project / "data", parse_instant(as_of))
                told.states.setdefault(delivery, reached)
                state = state if options else reached
    told.written |= read_messages(project)
    return told


def read_messages(project: Path) -> dict[Path, bytes]:
    return {path.relative_to(project): path.read_bytes() for path in project.rglob("*.jsonl")}


def generate(project: Path, *arguments: str) -> str:
    call = [sys.executable, "generate.py", *arguments]
    return subprocess.run(call, cwd=project, check=True, capture_output=True, text=True).stdout


def track(state: State, portfolio: str, security: str) -> Track:
    return state.snapshots[portfolio, security]


def changed(before: State, after: State) -> dict[Position, set[date]]:
    """Per position: the dates whose snapshot was replaced or removed between two states."""
    return {
        position: gone
        for position, old in before.snapshots.items()
        if (gone := {on for on, row in old.rows.items() if after.snapshots[position].rows.get(on) != row})
    }


def test_the_generator_makes_the_same_messages_each_time(told: Told, tmp_path: Path) -> None:
    project = copy_project("portfolio", tmp_path)

    for delivery in DELIVERIES:
        generate(project, *delivery.split())

    assert read_messages(project) == told.written
    assert len(told.written) == 24


def test_the_readme_delivers_everything_in_order_and_shows_what_the_generator_prints(told: Told) -> None:
    shown = {
        " ".join(command.words[2:]): command.shown
        for command in COMMANDS
        if command.words[:2] == ["python", "generate.py"]
    }

    assert tuple(told.states) == DELIVERIES
    assert shown == told.printed


# The fold


@pytest.fixture(scope="module")
def fifo() -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("portfolio_folds", EXAMPLES / "portfolio" / "folds.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.fifo
    return found


@pytest.fixture(scope="module")
def fields() -> Mapping[str, ColumnType]:
    declared = yaml.safe_load((EXAMPLES / "portfolio" / "strandline.yaml").read_text(encoding="utf-8"))
    types = {name: find_type(text) for name, text in declared["timelines"]["positions"]["fields"].items()}
    return {name: kind for name, kind in types.items() if kind}


def days_of(trades: list[Row]) -> list[Day]:
    """Transactions in folding order, date by date."""
    return [
        Day(on=on, facts=list(of_date)) for on, of_date in groupby(trades, lambda row: row["transaction_on"])
    ]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_fold_gives_the_history_of_the_model(
    told: Told, delivery: str, fifo: Callable[..., Any], fields: Mapping[str, ColumnType]
) -> None:
    state = told.states[delivery]
    trades = positions_of(state.rows["transactions"])

    failed, folded = set(), {}
    for position, of_position in trades.items():
        try:
            folded[position] = as_rows(fold_key(fifo, fields, days_of(of_position)).days)
        except FoldError:
            failed.add(position)

    assert failed == {position for position, history in state.histories.items() if history.failed}
    assert folded == {
        position: history.rows
        for position, history in state.histories.items()
        if not history.failed and history.rows
    }


def as_rows(days: tuple[FoldedDay, ...]) -> dict[date, Row]:
    return {day.on: dict(day.values) for day in days}


def test_the_fold_goes_on_from_every_stored_state(
    told: Told, fifo: Callable[..., Any], fields: Mapping[str, ColumnType]
) -> None:
    for of_position in positions_of(told.states["6 later"].rows["transactions"]).values():
        days = days_of(of_position)
        at_once = fold_key(fifo, fields, days)
        for place in range(1, len(days)):
            first = fold_key(fifo, fields, days[:place])
            rest = fold_key(fifo, fields, days[place:], first.state)
            assert (*first.days, *rest.days) == at_once.days
            assert rest.state == at_once.state


def test_the_fold_says_which_sale_is_too_large(
    told: Told, fifo: Callable[..., Any], fields: Mapping[str, ColumnType]
) -> None:
    trades = positions_of(told.states["6"].rows["transactions"])["P50", "DUNES"]

    with pytest.raises(
        FoldError, match=r"2024-03-28: ValueError: T0331 sells 500\.0000, but only 120\.0000 are held"
    ):
        fold_key(fifo, fields, days_of(trades))


# The story


def test_the_late_sale_leaves_110_that_cost_23_000_and_realises_600(told: Told) -> None:
    before = told.states["2"].histories["P07", "ACME"]
    after = told.states["3"].histories["P07", "ACME"]

    assert list(before.rows.values())[-1] == {
        "quantity": Decimal(150),
        "cost_basis": Decimal(31_000),
        "realised": Decimal(0),
    }
    assert list(after.rows.values())[-1] == {
        "quantity": Decimal(110),
        "cost_basis": Decimal(23_000),
        "realised": Decimal(600),
    }
    assert (before.epoch, after.epoch) == (0, 1)
    assert after.epochs == {date(2024, 3, 4): 0, date(2024, 3, 11): 1, date(2024, 3, 14): 1}
    assert set(changed(told.states["2"], told.states["3"])) == {("P07", "ACME")}
    assert min(changed(told.states["2"], told.states["3"])["P07", "ACME"]) == date(2024, 3, 11)


def test_an_ordinary_day_restates_nothing(told: Told) -> None:
    before, after = told.states["1"], told.states["2"]

    assert changed(before, after) == {}
    assert {row["epoch"] for row in after.rows["positions_state"]} == {0}
    assert {row["watermark_on"] for row in after.rows["positions_state"]} == {date(2024, 3, 22)}


def test_sixty_portfolios_in_three_currencies_hold_the_fund_on_every_date_of_march(told: Told) -> None:
    snapshots = told.states["6 later"].rows["daily_position_snapshots"]
    in_march = [row for row in snapshots if row["security_id"] == "WORLD" and row["date"] >= date(2024, 3, 1)]

    assert {row["currency"] for row in snapshots} == {"EUR", "USD", "GBP"}
    assert len({row["portfolio_id"] for row in in_march}) == 60
    assert len(in_march) == 60 * 19
    assert len({row["date"] for row in snapshots}) == 38


def test_the_restated_price_reaches_one_date_of_every_portfolio_and_the_trade_its_own(told: Told) -> None:
    by_price = changed(told.states["3"], told.states["4"])
    together = changed(told.states["3"], told.states["4 later"])

    assert by_price == {(f"P{number:02}", "WORLD"): {date(2024, 3, 20)} for number in range(1, 61)}
    assert together == {**by_price, ("P33", "BORG"): {date(2024, 3, 25)}}


def test_two_late_trades_are_one_epoch_in_one_run_and_two_in_two(told: Told) -> None:
    epochs = {
        delivery: [track(told.states[delivery], portfolio, "CIRRUS").epoch for portfolio in ("P41", "P42")]
        for delivery in ("4 later", "5", "5 later")
    }
    one, two = (track(told.states["5 later"], portfolio, "CIRRUS") for portfolio in ("P41", "P42"))

    assert epochs == {"4 later": [0, 0], "5": [1, 1], "5 later": [1, 2]}
    assert one.rows == two.rows


def test_the_sixth_day_fails_two_positions_and_mends_them(told: Told) -> None:
    before, failed, mended = (told.states[delivery] for delivery in ("5 later", "6", "6 later"))
    holiday, dunes = date(2024, 3, 18), ("P50", "DUNES")

    assert {position for position, kept in failed.snapshots.items() if kept.failed} == {
        dunes,
        ("P30", "DUNES"),
    }
    assert failed.snapshots[dunes].rows == before.snapshots[dunes].rows
    assert {position for position, kept in failed.snapshots.items() if holiday in kept.rows} == {dunes}
    assert min(track(failed, "P30", "DUNES").rows) == date(2024, 2, 19)
    assert track(failed, "P22", "CIRRUS").rows == {}
    assert track(failed, "P22", "CIRRUS").epoch == 1
    assert not any(kept.failed for kept in mended.snapshots.values())
    assert not any(holiday in kept.rows for kept in mended.snapshots.values())
    assert track(mended, *dunes).epoch == track(failed, *dunes).epoch + 1
    assert min(track(mended, "P30", "DUNES").rows) == date(2024, 2, 15)
    assert track(mended, "P30", "DUNES").epoch == 0


def test_every_case_is_among_the_snapshots(told: Told) -> None:
    """Agreement on flawless data would show little."""
    state = told.states["3"]
    snapshots = state.rows["daily_position_snapshots"]

    assert {row["valuation_status"] for row in snapshots} == {"VALUED_CURRENT", "VALUED_STALE", "UNVALUED"}
    assert max(track(state, "P09", "FJORD").rows) == date(2024, 3, 11), "sold out at cost"
    assert track(state, "P26", "ELMS").rows[date(2024, 3, 25)]["quantity"] == 0, "sold out at a profit"
    assert min(track(state, "P05", "BORG").rows) == date(2024, 3, 4), "a trade on a Saturday"
    assert track(state, "P05", "BORG").rows[date(2024, 3, 4)]["valuation_status"] == "VALUED_STALE"


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_model_never_loses_a_row_and_totals_are_sums(told: Told, delivery: str) -> None:
    state = told.states[delivery]
    positions, portfolios = state.rows["position_timeseries"], state.rows["portfolio_timeseries"]

    for tracks in (state.histories, state.snapshots):
        for kept in tracks.values():
            assert all(epoch <= kept.epoch for epoch in kept.epochs.values())
            assert all(epoch < by <= kept.epoch for _, _, epoch, by in kept.superseded)
            assert {by for *_, by in kept.superseded} <= set(range(1, kept.epoch + 1))
    for column in ("market_value", "day_change", "unrealised", "realised_on_day"):
        assert sum(row[column] or 0 for row in positions) == sum(row[column] for row in portfolios)
    assert sum(row["day_change"] for row in positions) == sum(
        list(kept.rows.values())[-1]["market_value"] or 0 for kept in state.snapshots.values() if kept.rows
    )
    assert all(state.offered[dataset] >= len(state.rows[dataset]) for dataset in FACTS)
