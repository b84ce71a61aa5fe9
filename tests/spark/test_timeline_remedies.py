"""The remedies of errors about single keys of a timeline settle them, and the other keys never wait."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from strandline.app.planning import RunRequest
from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

YAML = """
project: remedies
sources:
  fills: {files: "fills/*.jsonl"}
  rates: {files: "rates/*.jsonl"}
datasets:
  trade:
    from: fills
    columns:
      id: id
      item: what
      traded_on: {path: on, type: date}
      amount: {path: n, type: bigint}
      seq: {path: seq, type: bigint}
    record_set: {key: [id], order_by: [seq]}
  rate:
    from: rates
    columns: {item: what, rated_on: {path: on, type: date}, rate: {path: rate, type: bigint}}
    record_set: {key: [item, rated_on], order_by: [rate]}
timelines:
  stock:
    key: [item]
    facts: trade
    date: traded_on
    order_by: [id]
    fold: folds.py:add
    fields: {amount: bigint}
    output_dataset: history
    valuation:
      output_dataset: daily
      calendar: weekdays
      references:
        rate: {dataset: rate, on: [item], date: rated_on, required: true}
      columns: {worth: amount * rate.rate}
"""
FOLD = """
def add(state, facts):
    amount = (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)
    if amount < 0:
        raise ValueError("sold more than there is")
    return {"amount": amount}
"""
NOW = at("2024-01-03T12:00:00Z")  # a Wednesday


def trade(id_: str, item: str, on: str, amount: int, seq: int) -> dict[str, object]:
    return {"id": id_, "what": item, "on": f"2024-01-{on}", "n": amount, "seq": seq}


def test_a_timeline_is_whole_after_what_its_errors_tell(make_project: Callable[[str], TestProject]) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    project.lines(
        "fills/1.jsonl",
        trade("1", "a", "01", 2, 1),
        trade("2", "b", "01", 3, 1),
        trade("3", "c", "02", 1, 1),
        trade("4", "b", "02", -4, 1),
    )
    rates = [{"what": item, "on": "2024-01-01", "rate": 10} for item in ("b", "c")]
    project.lines("rates/1.jsonl", *rates, {"what": "a", "on": "2024-01-02", "rate": 10})

    wrong = project.run(NOW, ok=False)

    folded, valued = result_of(wrong, "history"), result_of(wrong, "daily")
    assert (wrong.exit_code, folded.slug, valued.slug) == (1, "fold-failed", "reference-missing")
    assert "Correct their facts, and run again; or correct `add` in folds.py" in folded.error
    assert "Add the missing rows; those dates are then valued by the next run." in valued.error
    assert "(a) has no row of `rate` on 2024-01-01" in valued.error
    whole = {(item, day, worth) for item, day, worth in _read_daily(project) if item != "b"}
    assert whole == {("a", 2, 20), ("a", 3, 20), ("c", 2, 10), ("c", 3, 10)}

    project.lines("fills/2.jsonl", trade("4", "b", "02", -1, 2))
    project.lines("rates/2.jsonl", {"what": "a", "on": "2024-01-01", "rate": 5})
    project.run(NOW)

    mended = {("a", 1, 10), ("b", 1, 30), ("b", 2, 20), ("b", 3, 20)}
    assert _read_daily(project) == whole | mended
    project.assert_verified("history", "daily")


def _read_daily(project: TestProject) -> set[tuple[str, int, int]]:
    return {(item, day.day, worth) for item, day, worth in project.rows("daily", "item", "date", "worth")}


def test_a_declaration_that_changed_leaves_epochs_and_superseded_rows_as_they_were(
    make_project: Callable[[str], TestProject],
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    project.lines("fills/1.jsonl", trade("1", "a", "01", 2, 1), trade("2", "b", "01", 3, 1))
    project.lines("rates/1.jsonl", *({"what": item, "on": "2024-01-01", "rate": 10} for item in ("a", "b")))
    project.run(NOW)
    project.lines("fills/2.jsonl", trade("1", "a", "02", 2, 2))
    project.run(NOW)
    before = _read_superseded(project)
    assert before == {("a", 1, 20, 0, 1)}

    dearer = "amount * rate.rate + CASE item WHEN 'b' THEN 1 ELSE 0 END"
    project.declare(YAML.replace("{worth: amount * rate.rate}", f'{{worth: "{dearer}"}}'))
    project.run(RunRequest(backfill="daily", as_of=NOW.as_of, reason="a test"))

    assert _read_superseded(project) == before | {("b", day, 30, 0, 1) for day in (1, 2, 3)}
    epochs = {(item, day.day, epoch) for item, day, epoch in project.rows("daily", "item", "date", "epoch")}
    assert epochs == {("a", 2, 0), ("a", 3, 0), ("b", 1, 1), ("b", 2, 1), ("b", 3, 1)}
    project.assert_verified("daily")


def _read_superseded(project: TestProject) -> set[tuple[str, int, int, int, int]]:
    columns = ("item", "date", "worth", "epoch", "superseded_by")
    return {(item, day.day, *rest) for item, day, *rest in project.rows("stock_epochs", *columns)}


def test_a_field_of_another_type_is_published_by_the_backfill_that_its_freeze_asks_for(
    make_project: Callable[[str], TestProject],
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    project.lines("fills/1.jsonl", trade("1", "a", "01", 2, 1))
    project.lines("rates/1.jsonl", {"what": "a", "on": "2024-01-01", "rate": 10})
    project.run(NOW)
    project.declare(YAML.replace("amount: bigint}\n    output", 'amount: "decimal(9,2)"}\n    output'))

    held = project.run(NOW).held
    project.run(RunRequest(backfill="stock", as_of=NOW.as_of, reason="a test"))

    assert {node.node for node in held.nodes} >= {"history"}
    assert project.rows("history", "item", "amount") == {("a", Decimal("2.00"))}
    assert {str(worth) for (worth,) in project.query("select worth from daily")} == {"20.00"}
    project.assert_verified("stock")
