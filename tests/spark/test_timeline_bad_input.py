"""Bad folds, facts, calendars and expressions through the command line: told, mended, and nothing is lost.

One project has every mistake. One run meets them all, and the next runs do what was told.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from strandline.cli import main
from tests.harness import TestProject

pytestmark = pytest.mark.spark

YAML = """\
project: bad
sources:
  fills: {files: "fills/*.jsonl"}
  rates: {files: "rates/*.jsonl"}
  opens: {files: "opens/*.jsonl"}
datasets:
  trade:
    from: fills
    columns:
      id: id
      item: what
      traded_on: {path: on, type: date}
      amount: {path: n, type: bigint}
      mistake: mistake
      seq: {path: seq, type: bigint}
    record_set: {key: [id], order_by: [seq]}
  rate:
    from: rates
    columns:
      item: what
      rated_on: {path: on, type: date}
      rate: {path: rate, type: bigint}
      seq: {path: seq, type: bigint}
    record_set: {key: [item, rated_on], order_by: [seq]}
  open:
    from: opens
    columns: {business_on: {path: on, type: date}}
    record_set: {key: [business_on], order_by: [business_on]}
timelines:
  stock: &stock
    key: [item]
    facts: trade
    date: traded_on
    order_by: [id]
    fold: folds.py:add
    fields: {amount: bigint}
    output_dataset: stock_history
    valuation: &valued
      output_dataset: stock_daily
      calendar: weekdays
      references:
        rate: {dataset: rate, on: [item], date: rated_on}
      columns: {worth: amount * rate.rate}
  closed:
    <<: *stock
    fold: plain.py:count
    fields: {n: bigint}
    output_dataset: closed_history
    valuation: {output_dataset: closed_daily, calendar: {dataset: open, date: business_on}}
  divided:
    <<: *stock
    fold: plain.py:count
    fields: {n: bigint}
    output_dataset: divided_history
    valuation:
      <<: *valued
      output_dataset: divided_daily
      columns:
        twice: n * 2
        share: no_such(n)
  loaded:
    <<: *stock
    fold: loaded.py:count
    fields: {n: bigint}
    output_dataset: loaded_history
    valuation: null
  never:
    <<: *stock
    fold: never.py:count
    fields: {n: bigint}
    output_dataset: never_history
    valuation: null
"""
FOLDS = """\
import sys


class Lot:
    pass


def add(state, facts):
    amount = (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)
    for mistake in (fact["mistake"] for fact in facts):
        if mistake == "no dict":
            return [amount]
        if mistake == "no field":
            return {"amuont": amount}
        if mistake == "set":
            return {"amount": amount, "lots": {1}}
        if mistake == "object":
            return {"amount": amount, "lot": Lot()}
        if mistake == "raises":
            raise ValueError("sold more than there is")
        if mistake == "exits":
            sys.exit("that is all")
    return {"amount": amount}
"""
PLAIN = """\
def count(state, facts):
    return {"n": (state or {"n": 0})["n"] + len(facts)}
"""
MISTAKES = {
    # The mistake of a fact, which is the name of its key too, and what is told of it
    "no dict": "the fold returned a list, not a dict  [fold-state]",
    "no field": "the state has no `amount`  [fold-field]",
    "set": "`state.lots` is a set, which cannot be stored  [fold-state]",
    "object": "`state.lot` is a Lot, which cannot be stored  [fold-state]",
    "raises": "ValueError: sold more than there is  [fold-failed]",
    "exits": "SystemExit: that is all  [fold-failed]",
}
Call = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def project(make_project: Callable[[str], TestProject]) -> TestProject:
    project = make_project(YAML)
    project.write("folds.py", FOLDS)
    project.write("plain.py", PLAIN)
    project.write("loaded.py", f"RATES = [1][7]\n\n\n{PLAIN}")
    project.write("never.py", "def count(state, facts):\n    pass\n")
    return project


@pytest.fixture
def call(project: TestProject, capfd: pytest.CaptureFixture[str]) -> Call:
    """Calls a verb as of a Wednesday, and gives its exit code and its document with tasks by node."""

    def ask(*words: str) -> tuple[int, dict[str, Any]]:
        capfd.readouterr()
        as_of = ("--as-of", "2024-01-03T12:00:00Z")
        code = main([*words, *as_of, "--project", str(project.folder), "--output", "json"])
        document = json.loads(capfd.readouterr().out)
        return code, {**document, "tasks": {task["node"]: task for task in document["tasks"]}}

    return ask


def trade(item: str, seq: int, **others: object) -> dict[str, object]:
    return {"id": item, "what": item, "on": "2024-01-02", "n": 3, "seq": seq, **others}


def rate(item: str, rate: int, seq: int) -> dict[str, object]:
    return {"what": item, "on": "2024-01-01", "rate": rate, "seq": seq}


def read(project: TestProject, dataset: str, column: str) -> dict[tuple[str, int], Any]:
    """The values of a column, by item and day of the month."""
    rows = project.rows(dataset, "item", "date", column)
    return {(item, on.day): value for item, on, value in rows}


def test_each_mistake_is_told_and_after_its_remedy_nothing_is_lost(project: TestProject, call: Call) -> None:
    told = {
        "stock_history": "fold-failed",
        "closed_daily": "calendar-empty",
        "divided_daily": "sql-refused",
        "loaded_history": "python-raised",
        "never_history": "fold-failed",
    }
    _meet_every_mistake(project, call, told)
    _mend_every_mistake(project, call, {"divided_daily": "expression-raised"})
    _change_the_fold(project, call)
    _divide_by_zero_again(project, call, {"divided_daily": "expression-raised"})


def _meet_every_mistake(project: TestProject, call: Call, slugs: dict[str, str]) -> None:
    wrong = [trade(mistake, 1, mistake=mistake) for mistake in MISTAKES]
    project.lines("fills/1.jsonl", trade("good", 1), *wrong, trade("good", 1, id="undated", on=None))
    project.lines("rates/1.jsonl", rate("good", 0, 1), *(rate(item, 2, 1) for item in MISTAKES))

    code, outcome = call("run")

    assert (code, _slugs(outcome)) == (1, slugs)
    folded = outcome["tasks"]["stock_history"]
    assert (folded["counts"]["failed"], folded["counts"]["unplaced"]) == (len(MISTAKES), 1)
    assert folded["notes"] == ["1 fact of `trade` without `traded_on` left out until corrected."]
    reasons = dict(project.rows("stock_state", "item", "reason"))
    assert reasons == {"good": None, **{item: f"2024-01-02: {text}" for item, text in MISTAKES.items()}}
    assert read(project, "stock_daily", "worth") == {("good", 2): 0, ("good", 3): 0}
    assert read(project, "closed_history", "n") == {(item, 2): 1 for item in ("good", *MISTAKES)}
    assert read(project, "closed_daily", "n") == {}
    for node in slugs:
        _assert_told(outcome, node, TOLD[node])


def _mend_every_mistake(project: TestProject, call: Call, slugs: dict[str, str]) -> None:
    """The expression that Spark refused is replaced by one that divides by zero."""
    project.lines("fills/2.jsonl", *(trade(item, 2) for item in MISTAKES), trade("good", 2, id="undated"))
    project.lines("opens/1.jsonl", {"on": "2024-01-03"})
    project.write("loaded.py", PLAIN)
    project.write("never.py", PLAIN)
    project.declare(YAML.replace("no_such(n)", "n / rate.rate"))

    code, outcome = call("run")

    assert (code, _slugs(outcome)) == (1, slugs)
    _assert_told(outcome, "divided_daily", DIVIDED)
    assert outcome["tasks"]["stock_history"]["counts"]["unplaced"] == -1
    days = [(item, day) for item in ("good", *MISTAKES) for day in (2, 3)]
    assert read(project, "stock_daily", "worth") == {cell: 0 if cell[0] == "good" else 6 for cell in days}
    facts = {(item, day): 2 if item == "good" else 1 for item, day in days}
    for dataset, day in (("loaded_history", 2), ("never_history", 2), ("closed_daily", 3)):
        assert read(project, dataset, "n") == {cell: n for cell, n in facts.items() if cell[1] == day}
    project.assert_verified("stock", "closed_daily")


def _change_the_fold(project: TestProject, call: Call) -> None:
    """It is told that the fold is frozen and how to end that; what comes meanwhile is not lost.

    The rate that something was divided by is corrected too.
    """
    before = read(project, "stock_history", "amount")
    project.write("folds.py", FOLDS.replace('sum(fact["amount"]', '10 * sum(fact["amount"]'))
    project.lines("fills/3.jsonl", trade("good", 3, id="third", on="2024-01-03"))
    project.lines("rates/3.jsonl", rate("good", 4, 3))
    wanted = ("--select", "+stock_daily", "+divided_daily")

    code, outcome = call("run", *wanted)

    assert (code, _slugs(outcome)) == (0, {})
    assert {held["node"]: held["state"] for held in outcome["held"]}["stock_history"] == "frozen"
    assert read(project, "stock_history", "amount") == before
    shares = {(item, day): 0.5 for item in ("good", *MISTAKES) for day in (2, 3)}
    assert read(project, "divided_daily", "share") == shares | {("good", 3): 0.75}
    assert call("run", *wanted, "--fail-on", "held")[0] == 1

    code, outcome = call(*outcome["settle"].split()[1:])

    assert (code, outcome["held"]) == (0, [])
    call("run", *wanted)
    changed = {cell: 10 * amount for cell, amount in before.items()}
    assert read(project, "stock_history", "amount") == changed | {("good", 3): 90}
    rates = {item: 4 if item == "good" else 2 for item, _ in before}
    daily = {(item, day): changed[item, 2] * rates[item] for item in rates for day in (2, 3)}
    assert read(project, "stock_daily", "worth") == daily | {("good", 3): 360}


def _divide_by_zero_again(project: TestProject, call: Call, slugs: dict[str, str]) -> None:
    """An expression that was right for all rows raises for a new one: what is published stays."""
    before = read(project, "divided_daily", "share")
    project.lines("rates/4.jsonl", rate("good", 0, 4))

    code, outcome = call("run", "--select", "+divided_daily")

    assert (code, _slugs(outcome)) == (1, slugs)
    _assert_told(outcome, "divided_daily", DIVIDED)
    assert read(project, "divided_daily", "share") == before

    project.declare(YAML.replace("no_such(n)", "try_divide(n, rate.rate)"))
    code, _ = call("backfill", "divided", "--all")

    assert code == 0
    assert read(project, "divided_daily", "share") == before | {("good", 2): None, ("good", 3): None}
    project.assert_verified("divided_daily")


def _slugs(outcome: dict[str, Any]) -> dict[str, str]:
    return {node: task["slug"] for node, task in outcome["tasks"].items() if "slug" in task}


Told = tuple[str, str]
"""What an error says, and what it tells to do."""


def _assert_told(outcome: dict[str, Any], node: str, told: Told) -> None:
    error = outcome["tasks"][node]["error"]
    assert error.startswith(told[0]), error
    assert f"\n  {told[1]}" in error, error


def _place(timeline: str) -> str:
    """Where the valuation of a timeline is declared."""
    lines = YAML.splitlines()
    begins = lines.index(f"  {timeline}:")
    line = next(n for n, line in enumerate(lines, 1) if n > begins and line.startswith("    valuation:"))
    return f"strandline.yaml:{line}"


TOLD: dict[str, Told] = {
    "stock_history": (
        f"{len(MISTAKES)} keys of `stock` could not be folded: (",
        "Correct their facts, and run again; or correct `add` in folds.py, and run"
        " `strandline backfill stock --all`.  [fold-failed]",
    ),
    "closed_daily": (
        f"{_place('closed')}: the calendar of the timeline `closed`, `open`, has no row with a"
        " `business_on`, so `closed_daily` has no rows.",
        "Add its business dates, and run again; or declare `calendar: weekdays`, and run"
        " `strandline backfill closed --all`.  [calendar-empty]",
    ),
    "divided_daily": (
        f"{_place('divided')}: Spark refuses the column `share` of the timeline `divided`, `no_such(n)`:"
        " [UNRESOLVED_ROUTINE]",
        "Correct the expression, then run `strandline backfill divided --all`.  [sql-refused]",
    ),
    "loaded_history": (
        "loaded.py raised IndexError while it was loaded: list index out of range",
        "Correct the file.  [python-raised]",
    ),
    "never_history": (
        f"{len(MISTAKES) + 1} keys of `never` could not be folded: (",
        "Correct their facts, and run again; or correct `count` in never.py, and run",
    ),
}
DIVIDED: Told = (
    f"{_place('divided')}: the column `share` of the timeline `divided` cannot be computed for some row:"
    " `n / rate.rate` raised DIVIDE_BY_ZERO. What is published stays as it is.",
    "Correct the row that it reads, and run again; or use `try_divide`, which gives NULL, and run"
    " `strandline backfill divided --all`.  [expression-raised]",
)
