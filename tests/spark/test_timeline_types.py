"""Timelines with every type as key, field and looked-up value equal an oracle in plain Python.

One key has a column of every type, and all of them together look up a reference. Keys that differ in
one value only, such as NULL and an empty text, stay apart; 0.0 and -0.0, or two NaN, are one key.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

import pytest

from tests.harness import TestProject, at
from tests.types.catalogue import KINDS as CATALOGUE
from tests.types.catalogue import Kind

pytestmark = pytest.mark.spark

KINDS = tuple(kind for kind in CATALOGUE if "<" not in kind.sql)
"""All but lists, structs and maps, which cannot be part of a key."""
FIELDS = {
    "label": "string",
    "total": "decimal(10,2)",
    "exact": "decimal(38,10)",
    "ratio": "double",
    "n": "int",
    "big": "bigint",
    "even": "boolean",
    "last_on": "date",
    "last_at": "timestamp",
    "nothing": "string",
}
FOLD = """
from datetime import timedelta
from decimal import Decimal


def fold(state, facts):
    lots = [] if state is None else state["book"]["lots"]
    labels = {fact["label"] for fact in facts} | ({state["label"]} if state else set())
    if len(labels) > 1:
        raise ValueError(f"two keys are folded as one: {sorted(labels)}")
    for fact in facts:
        lots.append({"amount": fact["amount"], "at": fact["happened_at"]})
    total = sum((lot["amount"] for lot in lots), Decimal(0))
    return {
        "book": {"lots": lots},
        "label": labels.pop(),
        "total": total,
        "exact": total / 7,
        "ratio": float(total) / 3,
        "n": len(lots),
        "big": 2**62 + len(lots),
        "even": len(lots) % 2 == 0,
        "last_on": facts[-1]["happened_on"],
        "last_at": lots[-1]["at"] - timedelta(microseconds=1),
        "nothing": None,
    }


def count(state, facts):
    return {"n": (state or {"n": 0})["n"] + len(facts)}
"""
REFUSED = {"listed_history": "key-type", "mixed_daily": "reference-type"}
"""What is refused where types become known only with the rows."""


def pick_value(kind: Kind) -> str:
    values = ", ".join(sql for sql, _ in kind.values)
    return f"element_at(array({values}), p_{kind.name} + 1) as v_{kind.name}"


VALUES = ", ".join(f"v_{kind.name}" for kind in KINDS)
SAME = ", ".join(f"v_{kind.name}: v_{kind.name}" for kind in KINDS)
PICKS = "".join(f", p_{kind.name}: {{path: picks.{kind.name}, type: int}}" for kind in KINDS)
YAML = f"""
project: types
timezone: America/St_Johns
sources: {{events: {{files: "events/*.jsonl"}}}}
datasets:
  event:
    from: events
    columns: {{id: id, label: label, op: op, happened_on: {{path: on, type: date}},
      happened_at: {{path: at, type: timestamp}}, amount: {{path: amount, type: "decimal(20,3)"}},
      worth: {{path: worth, type: bigint}}, seq: {{path: seq, type: int}}{PICKS}}}
    record_set: {{key: [id], order_by: [seq], deleted: "op = 'D'"}}
jobs:
  - name: typed_events
    input_datasets: [event]
    output_dataset: typed_events
    incremental: {{mode: keyed, key: [id]}}
    sql: |
      select id, label, happened_on, happened_at, amount, worth, seq, array(label, null) as labels,
      {", ".join(map(pick_value, KINDS))} from event
  - name: mark
    input_datasets: [typed_events]
    output_dataset: mark
    incremental: {{mode: keyed, key: [label]}}
    sql: |
      select label, {VALUES}, sum(worth) as worth from typed_events where worth is not null
      group by label, {VALUES}
timelines:
  listed:
    key: [labels]
    facts: typed_events
    date: happened_on
    order_by: [seq]
    fold: folds.py:fold
    fields: {{label: string}}
    output_dataset: listed_history
  mixed:
    key: [{VALUES}]
    facts: typed_events
    date: happened_on
    order_by: [seq]
    fold: folds.py:count
    fields: {{}}
    output_dataset: mixed_history
    valuation:
      output_dataset: mixed_daily
      calendar: weekdays
      references: {{r: {{dataset: mark, on: {{label: v_int, {SAME}}}}}}}
      columns: {{worth: r.worth}}
  every:
    key: [{VALUES}]
    facts: typed_events
    date: happened_on
    order_by: [seq]
    fold: folds.py:fold
    fields: {json.dumps(FIELDS)}
    output_dataset: every_history
    valuation:
      output_dataset: every_daily
      calendar: weekdays
      due_at: "18:00"
      references: {{r: {{dataset: mark, on: [label, {VALUES}]}}}}
      columns: {{worth: r.worth, copied: v_binary}}
"""
Picks = Mapping[str, int]


def identity(picks: Picks) -> str:
    return "|".join(kind.values[picks[kind.name]][1] for kind in KINDS)


@dataclass
class World:
    """Facts as they are, and the messages that tell what changed."""

    project: TestProject
    chance: Random
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    seq: int = 0
    written: list[dict[str, Any]] = field(default_factory=list)

    def put(self, picks: Picks, on: date) -> None:
        self.seq += 1
        name = f"e{self.seq}"
        moment = datetime.combine(on, datetime.min.time(), UTC) + timedelta(seconds=self.seq, microseconds=7)
        self.events[name] = {
            "id": name,
            "label": identity(picks),
            "on": on.isoformat(),
            "at": moment.isoformat(),
            "amount": str(Decimal(self.chance.randrange(-9999, 9999)) / 1000),
            "worth": self.chance.choice((None, 1, 20, 300)),
            "seq": self.seq,
            "picks": dict(picks),
        }
        self.written.append(self.events[name])

    def cancel(self, name: str) -> None:
        self.seq += 1
        self.written.append(self.events.pop(name) | {"op": "D", "seq": self.seq})

    def deliver(self) -> None:
        self.project.lines(f"events/{self.seq:06}.jsonl", *self.written)
        self.written = []

    def expect_history(self) -> dict[tuple[str, date], dict[str, Any]]:
        by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in self.events.values():
            by_key[event["label"]].append(event)
        rows = {}
        for label, events in by_key.items():
            lots: list[dict[str, Any]] = []
            for event in sorted(events, key=lambda e: (e["on"], e["seq"])):
                lots.append(event)
                on = date.fromisoformat(event["on"])
                rows[label, on] = fields_of(label, lots)
        return rows

    def expect_daily(self, last: date) -> dict[tuple[str, date], dict[str, Any]]:
        history = self.expect_history()
        worths: dict[str, int] = {}
        for event in self.events.values():
            if event["worth"] and "NULL" not in event["label"].split("|"):  # NULL matches nothing
                worths[event["label"]] = worths.get(event["label"], 0) + event["worth"]
        rows = {}
        for label in {label for label, _ in history}:
            dates = sorted(on for name, on in history if name == label)
            day = dates[0]
            while day <= last:
                if day.weekday() < 5:
                    since = max(on for on in dates if on <= day)
                    rows[label, day] = history[label, since] | {"worth": worths.get(label)}
                day += timedelta(days=1)
        return rows


def fields_of(label: str, lots: list[dict[str, Any]]) -> dict[str, Any]:
    total = sum((Decimal(lot["amount"]) for lot in lots), Decimal(0))

    def rounded(value: Decimal, places: int) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    return {
        "label": label,
        "total": rounded(total, 2),
        "exact": rounded(total / 7, 10),
        "ratio": float(total) / 3,
        "n": len(lots),
        "big": 2**62 + len(lots),
        "even": len(lots) % 2 == 0,
        "last_on": date.fromisoformat(lots[-1]["on"]),
        "last_at": datetime.fromisoformat(lots[-1]["at"]) - timedelta(microseconds=1),
        "nothing": None,
    }


def read(
    project: TestProject, dataset: str, columns: Iterable[str]
) -> dict[tuple[str, date], dict[str, Any]]:
    names = list(columns)
    found = project.query(f"SELECT date, {', '.join(names)} FROM {dataset}")
    rows = {(row[1], row[0]): dict(zip(names, row[1:], strict=True)) for row in found}
    assert len(rows) == len(found), f"{dataset} has two rows for one key and date"
    return rows


def check(project: TestProject, world: World, last: date) -> None:
    history, daily = world.expect_history(), world.expect_daily(last)
    compare(read(project, "every_history", FIELDS), history)
    compare(read(project, "every_daily", [*FIELDS, "worth"]), daily)
    labels = {label for label, _ in history}
    assert len(project.query("SELECT * FROM every_state WHERE watermark_on IS NOT NULL")) >= len(labels)


def compare(found: Mapping[tuple[str, date], Any], expected: Mapping[tuple[str, date], Any]) -> None:
    assert sorted(found) == sorted(expected), sorted(set(found) ^ set(expected))[:5]
    differing = {
        place: (found[place], expected[place]) for place in expected if found[place] != expected[place]
    }
    assert not differing, list(differing.items())[:2]


def one_value_apart(chance: Random) -> list[Picks]:
    """A key without NULL, and for every value of every type one that differs from it there."""
    whole = {k.name: [n for n, (_, identity) in enumerate(k.values) if identity != "NULL"] for k in KINDS}
    base = {name: chance.choice(picks) for name, picks in whole.items()}
    found: list[Picks] = [base]
    for kind in KINDS:
        found += [base | {kind.name: pick} for pick in range(len(kind.values)) if pick != base[kind.name]]
    return found


def run(project: TestProject, as_of: str) -> None:
    outcome = project.run(at(as_of), ok=False)
    told = {result.node: (result.slug, result.error) for result in outcome.results if result.error}
    assert {node: slug for node, (slug, _) in told.items()} == REFUSED, told


def test_every_type_as_key_field_and_looked_up_value(make_project: Callable[[str], TestProject]) -> None:
    project, chance = make_project(YAML), Random(15)
    project.write("folds.py", FOLD)
    world, keys = World(project, chance), one_value_apart(Random(15))
    for picks in keys:
        world.put(picks, date(2024, 3, chance.choice((1, 2, 4))))
    world.deliver()
    run(project, "2024-03-06T21:29:00Z")  # in St John's it is 17:59: not due
    check(project, world, date(2024, 3, 5))
    for picks in chance.sample(keys, 25):
        world.put(picks, date(2024, 3, chance.choice((3, 5))))
    for name in chance.sample(sorted(world.events), 12):
        world.cancel(name)
    world.deliver()
    run(project, "2024-03-06T21:30:00Z")
    check(project, world, date(2024, 3, 6))
    project.assert_verified("every", "mixed_history")
