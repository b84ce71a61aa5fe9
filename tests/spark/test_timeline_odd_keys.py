"""Requests, maintenance and the past of a timeline whose key is of types that are easily compared wrongly."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from strandline.app.invalidate import invalidate
from strandline.app.maintain import maintain_tables
from strandline.app.planning import RunRequest
from strandline.app.query import KnownAt, query
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.app.run import RunOutcome
from strandline.app.timeline_history import find_folding, read_timeline_history
from strandline.app.workspace import open_workspace
from strandline.model.plan import Status
from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

YAML = """
project: odd_keys
sources:
  fills: {files: "fills/*.jsonl"}
  rates: {files: "rates/*.jsonl"}
datasets:
  fill:
    from: fills
    columns:
      id: id
      price: {path: price, type: "decimal(10,2)"}
      day: {path: day, type: date}
      heard_at: {path: at, type: timestamp}
      live: {path: live, type: boolean}
      name: name
      ratio: {path: ratio, type: double}
      filled_on: {path: on, type: date}
      amount: {path: n, type: bigint}
    record_set: {key: [id], order_by: [amount]}
  rate:
    from: rates
    columns: {price: {path: price, type: "decimal(10,2)"}, rated_on: {path: on, type: date},
      rate: {path: rate, type: bigint}}
    record_set: {key: [price, rated_on], order_by: [rate]}
timelines:
  stock:
    key: [price, day, heard_at, live, name, ratio]
    facts: fill
    date: filled_on
    order_by: [id]
    fold: folds.py:add
    fields: {amount: bigint}
    output_dataset: history
    valuation:
      output_dataset: daily
      calendar: weekdays
      references:
        rate: {dataset: rate, on: [price], date: rated_on}
      columns: {worth: amount * rate.rate}
"""
FOLD = """
def add(state, facts):
    return {"amount": (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)}
"""
NOW = at("2024-01-05T12:00:00Z")
DAYS = [date(2024, 1, day) for day in range(1, 6)]
KEYS: list[dict[str, Any]] = [
    {"price": "1.10", "day": "1582-10-15", "at": "0001-01-01T00:00:00.000001Z", "live": True, "ratio": 0.0},
    {"price": "1.10", "day": "2024-02-29", "at": "2024-03-10T02:30:00Z", "live": False, "ratio": 1e308},
    {"price": None, "day": None, "at": None, "live": None, "ratio": None},
]
NAMES = ('it\'s "odd" \\ 100%', "", None)
FIRST = (
    "price = 1.1 and day = '1582-10-15' and heard_at between '0001-01-01T00:00:00.000001Z' and '0001-01-02'"
    " and live = true and name = 'it''s \"odd\" \\\\ 100%' and ratio = -0.0"
)
"""The first of the keys and no other."""
Cells = dict[tuple[int, date], tuple[int, int | None]]


def fill(number: int, key: int, day: int, amount: int) -> dict[str, Any]:
    return KEYS[key] | {"id": f"f{number}", "name": NAMES[key], "on": str(DAYS[day]), "n": amount}


def expect(fills: Iterable[tuple[int, int, int]], rates: dict[int, int]) -> Cells:
    """By key and date: the sum so far, and its worth at the latest rate of 1.10, which the first two have."""
    sums: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for key, day, amount in fills:
        sums[key][day] += amount
    cells: Cells = {}
    for key, by_day in sums.items():
        for place, on in enumerate(DAYS):
            held = [amount for day, amount in by_day.items() if day <= place]
            rate = [rates[day] for day in sorted(rates) if day <= place and key < 2]
            if held:
                cells[key, on] = (sum(held), sum(held) * rate[-1] if rate else None)
    return cells


def read(project: TestProject, known_at: KnownAt | None = None) -> Cells:
    with open_workspace(project.folder) as workspace:
        rows = query(workspace, "SELECT name, date, amount, worth FROM daily", known_at).rows
    cells: Any = {(NAMES.index(name), on): (amount, worth) for name, on, amount, worth in rows}
    assert len(cells) == len(rows)
    return cells  # type: ignore[no-any-return]


def test_keys_of_odd_types_are_asked_for_maintained_and_read_as_they_were(
    make_project: Callable[[str], TestProject],
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    fills = [(0, 1, 5), (1, 2, 7), (2, 0, 9)]
    project.lines("fills/1.jsonl", *(fill(n, *one) for n, one in enumerate(fills)))
    project.lines("rates/1.jsonl", {"price": "1.10", "on": str(DAYS[0]), "rate": 10})
    version = result_of(project.run(NOW), "daily").table_version
    first = expect(fills, {0: 10})
    assert read(project) == first
    fills += [(0, 0, 100), (2, 1, 1)]
    late = fill(3, *fills[3]) | {"ratio": -0.0}  # the same key as 0.0
    project.lines("fills/2.jsonl", late, fill(4, *fills[4]))
    project.lines("rates/2.jsonl", {"price": "1.10", "on": str(DAYS[3]), "rate": 20})
    project.run(NOW)
    restated = expect(fills, {0: 10, 3: 20})
    assert read(project) == restated
    before = project.rows("daily"), project.rows("stock_state"), project.rows("stock_epochs")

    maintain(project)
    rebuild_catalog(project.folder)
    assert all(result.status is Status.UNCHANGED for result in project.run(NOW).results)
    assert version is not None
    assert read(project, KnownAt(versions={"daily": version})) == first
    asked = project.run(RunRequest(backfill="stock", where=FIRST, as_of=NOW.as_of))
    assert [find_keys(asked, output) for output in ("history", "daily")] == [(Status.UNCHANGED, 1)] * 2
    with open_workspace(project.folder) as workspace:
        invalidate(workspace, "fill", where=FIRST, reason="checked")
    assert find_keys(project.run(NOW), "history") == (Status.UNCHANGED, 1)
    assert (project.rows("daily"), project.rows("stock_state"), project.rows("stock_epochs")) == before
    assert_history_is_found(project)
    project.assert_verified("stock")


def maintain(project: TestProject) -> None:
    """Compact every table. Files that no version of the last month needs would be removed."""
    with open_workspace(project.folder) as workspace:
        settings = replace(workspace.project.settings, keep=timedelta(days=30))
        kept = replace(workspace, project=replace(workspace.project, settings=settings))
        assert not [
            table.error for table in maintain_tables(kept, None, lambda _: None).tables if table.error
        ]


def find_keys(outcome: RunOutcome, output: str) -> tuple[Status, int]:
    """How a task ended, and how many keys it computed."""
    result = result_of(outcome, output)
    return result.status, result.counts["keys"]


def assert_history_is_found(project: TestProject) -> None:
    texts = ["1.10", "1582-10-15", "0001-01-01T00:00:00.000001Z", "true", NAMES[0] or "", "-0.0"]
    with open_workspace(project.folder) as workspace:
        folding = find_folding(workspace.project, "stock")
        assert folding is not None
        found = read_timeline_history(workspace, "stock", folding, texts)
    assert [fact.row and fact.row["amount"] for fact in found.facts] == [100, 5]
    assert found.state is not None
    assert found.state.epoch == 1
    assert found.key["price"] == Decimal("1.10")
