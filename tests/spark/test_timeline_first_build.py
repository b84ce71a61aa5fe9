"""A first build counts its rows before it writes them, by the parts of the history or by the cells."""

from collections.abc import Callable

import pytest

from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

SOURCES = ("trade", "item", "listing", "rate")
YAML = """
project: built
sources:
{sources}
datasets:
  trades:
    from: trade
    columns: {{id: id, item: what, traded_on: {{path: on, type: date}}, n: {{path: n, type: bigint}}}}
    record_set: {{key: [id], order_by: [n]}}
  items:
    from: item
    columns: {{item: what, currency: currency}}
    record_set: {{key: [item], order_by: [currency]}}
  listings:
    from: listing
    columns: {{item: what, since: {{path: on, type: date}}, currency: currency}}
    record_set: {{key: [item, since], order_by: [currency]}}
  rates:
    from: rate
    columns: {{currency: currency, rated_on: {{path: on, type: date}}, rate: {{path: rate, type: bigint}}}}
    record_set: {{key: [currency, rated_on], order_by: [rate]}}
timelines:
{timelines}
"""
TIMELINE = """
  {name}:
    key: [item]
    facts: trades
    date: traded_on
    order_by: [id]
    fold: folds.py:add
    fields: {{amount: bigint}}
    output_dataset: {name}_history
    valuation:
      output_dataset: {name}_daily
      calendar: weekdays
      references: {{{references}}}
      columns: {{worth: "amount * coalesce({rate}, 1)"}}
"""
FOLD = """
def add(state, facts):
    return {"amount": (state or {"amount": 0})["amount"] + sum(fact["n"] for fact in facts)}
"""
BY_ITEM = "thing: {dataset: items, on: [item]REQUIRED}"
BY_LISTING = "listing: {dataset: listings, on: [item], date: since}"
RATE = "fx: {dataset: rates, on: {currency: FROM.currency}, date: rated_on, required: true}"
TIMELINES = {
    "rated": (f"{BY_ITEM}, {RATE.replace('FROM', 'thing')}", "fx.rate"),
    "known": (BY_ITEM.replace("REQUIRED", ", required: true"), "1"),
    "listed": (f"{BY_LISTING}, {RATE.replace('FROM', 'listing')}", "fx.rate"),
}
DUE = {  # from Monday, 1 January to Wednesday, 10 January: the dates on which nothing is missing
    "rated": {"a": 8, "b": 4},  # b has rates from the 5th on; c has a currency without any, d has none
    "known": {"a": 8, "b": 8, "c": 7},
    "listed": {"a": 3, "b": 3},  # a from the 1st to the 3rd, in another currency later; b from the 8th on
}
FAILED = {"rated": 3, "known": 1, "listed": 4}
"""Keys that lack something on some date."""


@pytest.fixture
def project(make_project: Callable[[str], TestProject]) -> TestProject:
    sources = "\n".join(f'  {name}: {{files: "{name}/*.jsonl"}}' for name in SOURCES)
    timelines = "".join(
        TIMELINE.format(name=name, references=references.replace("REQUIRED", ""), rate=rate)
        for name, (references, rate) in TIMELINES.items()
    )
    project = make_project(YAML.format(sources=sources, timelines=timelines))
    project.write("folds.py", FOLD)
    first = {"a": "01", "b": "01", "c": "02", "d": "01"}
    trades = [{"id": i, "what": i, "on": f"2024-01-{day}", "n": 2} for i, day in first.items()]
    project.lines("trade/1.jsonl", *trades, {"id": "e", "what": "a", "on": "2024-01-04", "n": 3})
    known = {"a": "EUR", "b": "USD", "c": "GBP"}
    project.lines("item/1.jsonl", *({"what": i, "currency": currency} for i, currency in known.items()))
    listed = [("a", "01", "EUR"), ("a", "04", "GBP"), ("b", "08", "USD")]
    project.lines(
        "listing/1.jsonl", *({"what": i, "on": f"2024-01-{on}", "currency": c} for i, on, c in listed)
    )
    rates = [("EUR", "2023-12-01"), ("EUR", "2024-01-03"), ("USD", "2024-01-05")]
    project.lines("rate/1.jsonl", *({"currency": c, "on": on, "rate": 2} for c, on in rates))
    return project


def test_a_first_build_publishes_and_counts_the_dates_on_which_nothing_is_missing(
    project: TestProject,
) -> None:
    outcome = project.run(at("2024-01-10T12:00:00Z"), ok=False)

    for name, due in DUE.items():
        result = result_of(outcome, f"{name}_daily")
        published = dict(project.query(f"SELECT item, count(*) FROM {name}_daily GROUP BY item"))
        assert published == due, name
        assert result.rows_written == sum(due.values()), name
        assert result.slug == "reference-missing", name
        assert result.counts["failed"] == FAILED[name], name
