"""Timelines on Spark: folded, valued and restated, each state compared with a model in plain Python."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from pyspark.sql import functions as F

from strandline.compute.valuation.clustering import cluster_parts
from strandline.compute.valuation.grid import HIGH, LOW, PLACE, spread_located
from strandline.model.project import Settings
from strandline.spark.session import get_session
from tests.harness import TestProject, at

pytestmark = pytest.mark.spark

YAML = """
project: shop
timezone: UTC
sources:
  trade: {files: data/trade/*.jsonl}
  quote: {files: data/quote/*.jsonl}
  open: {files: data/open/*.jsonl}
datasets:
  trades:
    from: trade
    columns:
      id: {path: id, type: string}
      book: {path: book, type: string}
      item: {path: what, type: string}
      traded_on: {path: on, type: date}
      amount: {path: n, type: bigint}
      seq: {path: seq, type: bigint}
      gone: {path: gone, type: boolean}
    record_set: {key: [id], order_by: [seq], deleted: gone}
  quotes:
    from: quote
    columns:
      item: {path: what, type: string}
      quoted_on: {path: on, type: date}
      price: {path: price, type: "decimal(12,2)"}
      seq: {path: seq, type: bigint}
    record_set: {key: [item, quoted_on], order_by: [seq]}
  opens:
    from: open
    columns:
      business_on: {path: on, type: date}
      gone: {path: gone, type: boolean}
      seq: {path: seq, type: bigint}
    record_set: {key: [business_on], order_by: [seq], deleted: gone}
timelines:
  positions:
    key: [book, item]
    facts: trades
    date: traded_on
    order_by: [id]
    fold: folds.py:add
    fields: {amount: bigint}
    output_dataset: history
    valuation:
      output_dataset: daily
      calendar: {dataset: opens, date: business_on}
      references:
        quote: {dataset: quotes, on: [item], date: quoted_on}
      columns:
        worth: amount * quote.price
"""
FOLD = """
def add(state, facts):
    amount = (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)
    if amount < 0:
        raise ValueError("sold more than there is")
    return {"amount": amount}
"""


DAYS = [f"2024-01-{day:02}" for day in range(1, 15)]


@dataclass
class Model:
    """What was delivered, and what readers must see: the plainest loops over all of it."""

    trades: dict[str, dict[str, Any]] = field(default_factory=dict)
    quotes: dict[tuple[str, str], int] = field(default_factory=dict)
    opens: set[str] = field(default_factory=set)
    due: str = ""

    def history(self, key: tuple[str, str]) -> list[tuple[str, int]] | None:
        """Dates with the amount after each. None if the fold fails."""
        mine = [t for t in self.trades.values() if (t["book"], t["what"]) == key]
        dates, amount = [], 0
        for day in sorted({t["on"] for t in mine}):
            amount += sum(t["n"] for t in mine if t["on"] == day)
            if amount < 0:
                return None
            dates.append((day, amount))
        return dates

    def daily(self, key: tuple[str, str]) -> list[tuple[str, int, int | None]] | None:
        history = self.history(key)
        if history is None:
            return None
        rows = []
        for day in sorted(d for d in self.opens if d <= self.due):
            held = [amount for since, amount in history if since <= day]
            prices = [
                p for (item, since), p in sorted(self.quotes.items()) if item == key[1] and since <= day
            ]
            if held:
                rows.append((day, held[-1], held[-1] * prices[-1] if prices else None))
        return rows


def test_any_history_gives_what_the_model_gives(make_project: Callable[[str], TestProject]) -> None:
    random, project, model = Random(7), make_project(YAML), Model()
    project.write("folds.py", FOLD)
    good: dict[str, dict[tuple[str, str], Any]] = {"history": {}, "daily": {}}
    for step in range(STEPS):
        due = deliver(random, project, model, step)
        outcome = project.run(at(f"{due}T12:00:00Z"), ok=False)
        errors = [r.error for r in outcome.results if r.error and r.slug != "fold-failed"]
        assert not errors, errors
        for dataset, columns in (("history", "date, amount"), ("daily", "date, amount, worth")):
            found: dict[tuple[str, str], list[Any]] = {}
            for book, item, day, *values in project.query(
                f"SELECT book, item, {columns} FROM {dataset} ORDER BY book, item, date"
            ):
                plain = [float(v) if isinstance(v, Decimal) else v for v in values]
                found.setdefault((book, item), []).append((str(day), *plain))
            for key in {(t["book"], t["what"]) for t in model.trades.values()} | set(found):
                expected = getattr(model, dataset)(key)
                if expected is not None:
                    good[dataset][key] = expected
                assert found.get(key, []) == good[dataset].get(key, []), (step, dataset, key)
        if step % 4 == 3:
            project.assert_verified("history", "daily")


STEPS = 8


def deliver(random: Random, project: TestProject, model: Model, step: int) -> str:
    """The files of one step. It returns the day up to which dates are due."""
    opens = random.sample(DAYS, 9) if step == 0 else random.sample(DAYS, random.choice([0, 0, 0, 1]))
    project.lines(
        f"data/open/{step}.jsonl", *({"on": d, "seq": step, "gone": d in model.opens} for d in opens)
    )
    model.opens ^= set(opens)
    quotes = [
        (random.choice("ab"), random.choice(DAYS), random.randint(1, 9))
        for _ in range(random.choice([0, 1, 3]))
    ]
    project.lines(
        f"data/quote/{step}.jsonl",
        *({"what": i, "on": d, "price": p, "seq": 10 * step + n} for n, (i, d, p) in enumerate(quotes)),
    )
    model.quotes |= {(i, d): p for i, d, p in quotes}
    messages = []
    for number in range(6 if step == 0 else random.choice([0, 1, 2, 3])):
        known = random.random() < 0.4 and list(model.trades)
        name = random.choice(known) if known else f"t{step}_{number}"
        trade = {
            "id": name,
            "book": random.choice("pq"),
            "what": random.choice("ab"),
            "on": random.choice(DAYS),
            "n": random.randint(-2, 5),
            "seq": 10 * step + number,
        }
        if known and random.random() < 0.4:
            messages.append(trade | {"gone": True})
            del model.trades[name]
        else:
            messages.append(trade | {"gone": False})
            model.trades[name] = trade
    project.lines(f"data/trade/{step}.jsonl", *messages)
    due = random.choice(DAYS[4:])
    model.due = max(model.due, due)
    return due


def test_parts_that_are_cut_into_files_give_the_same_cells_each_file_in_one_place() -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    random = Random(15)
    dates, most = 40, 100
    edges = [sorted(random.sample(range(dates + 1), 2)) for _ in range(60)]
    parts = session.createDataFrame(
        [(n, *edge) for n, edge in enumerate(edges)], f"n int, {LOW} int, {HIGH} int"
    )

    clustered = cluster_parts(parts, dates, most)

    located = spread_located(clustered).withColumn("file", F.spark_partition_id()).collect()
    cells = [(row["n"], row[PLACE]) for row in located]
    assert sorted(cells) == [(n, place) for n, (low, high) in enumerate(edges) for place in range(low, high)]
    places_by_file: dict[int, list[int]] = {}
    for row in located:
        places_by_file.setdefault(row["file"], []).append(row[PLACE])
    assert len(places_by_file) > 1
    assert all(len(places) <= most or len(set(places)) == 1 for places in places_by_file.values())
    ranges = sorted((min(places), max(places)) for places in places_by_file.values())
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
