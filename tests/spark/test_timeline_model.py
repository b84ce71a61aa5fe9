"""Timelines on Spark publish, commit by commit, what the model of tests/property publishes.

The model is checked against brute force by the thousand. Here a few of its histories are delivered as files:
references looked up by the key, by a field and through each other, dated, undated and required; herds; folds
that fail; dates that leave the calendar. Rows, epochs, superseded rows and states must be the model's.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import pytest

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from tests.harness import TestProject
from tests.property.timeline_fold import FoldNode
from tests.property.timeline_model import ValuationNode
from tests.property.timeline_reach import Seen
from tests.property.timeline_table import Table
from tests.property.timeline_world import (
    DATES,
    DOMAINS,
    REFERENCES,
    Date,
    Declaration,
    Inputs,
    Key,
    Reference,
    change_facts,
    change_inputs,
    choose_columns,
    fold,
    start_inputs,
)

pytestmark = pytest.mark.spark

CHOSEN = os.environ.get("STRANDLINE_TIMELINE_SEEDS", "")
"""More histories by hand, with every kind of reference: `STRANDLINE_TIMELINE_SEEDS=460,1107,1754`."""
SEEDS = [int(seed) for seed in CHOSEN.split(",")] if CHOSEN else [1551]
"""Otherwise one in which keys wait, fail, are mended and are restated."""
STEPS = 5 if CHOSEN else 4
FIRST_VERIFIED = 1
BATCH_ROWS = 4
TIMELINES = (
    {
        "grouped": ("listing", "price", "fx!", "factor", "desk", "tax"),
        "single": ("price", "factor!", "desk", "tariff"),
    }
    if CHOSEN
    else {"grouped": ("listing", "price", "fx!"), "single": ("price", "factor!", "desk")}
)
"""References, in their order. `!` stands for required."""
USED = {name.rstrip("!"): REFERENCES[name.rstrip("!")] for names in TIMELINES.values() for name in names}
TOGETHER = {"grouped"}
WITHOUT_NOTHING = {"single"}
"""Timelines that leave out dates on which nothing is held."""

FOLD = '''
def fold(state, facts):
    """A quantity that must not be negative, and a book that follows from what no field shows."""
    quantity, carry = (0, 0) if state is None else (state["quantity"], state["carry"])
    book = "xy"[carry % 2]
    for fact in facts:
        quantity += fact["amount"]
        carry = (2 * carry + fact["amount"]) % 3
    if quantity < 0:
        raise ValueError(f"{-quantity} sold that are not there")
    return {"quantity": quantity, "book": book, "carry": carry}
'''
TYPES = {"price": "bigint", "rate": "bigint", "times": "bigint"}


def day(on: Date) -> date:
    return date(2024, 1, 1) + timedelta(days=on)


def dataset(name: str, key: list[str], columns: Mapping[str, str]) -> str:
    known = {**columns, "seq": "bigint", "gone": "boolean"}
    return f"""
  {name}s:
    from: {name}
    columns: {{{", ".join(f"{c}: {{path: {c}, type: {t}}}" for c, t in known.items())}}}
    record_set: {{key: [{", ".join(key)}], order_by: [seq], deleted: gone}}"""


def reference_dataset(reference: Reference) -> str:
    keys = [f"k{n}" for n, _ in enumerate(reference.on)] + ["on_date"] * reference.dated
    types = {c: "date" if c == "on_date" else "string" for c in keys}
    values = {c: TYPES.get(c, "string") for c in DOMAINS[reference.name][1]}
    return dataset(reference.name, keys, types | values)


def timeline(name: str, declaration: Declaration) -> str:
    """The YAML of a declaration of the model."""
    of = {reference.name: reference for reference in declaration.references}
    factors = [f"{r}.{c}" for r, c in FACTORS if r in of]
    lines = []
    for reference in of.values():
        on = ", ".join(f"k{n}: {ours}" for n, ours in enumerate(reference.on))
        dated = ", date: on_date" if reference.dated else ""
        required = ", required: true" if reference.required else ""
        lines.append(f"{reference.name}: {{dataset: {reference.name}s, on: {{{on}}}{dated}{required}}}")
    references = "\n        ".join(lines)
    return f"""
  {name}:
    key: [portfolio, security]
    facts: facts
    date: happened_on
    order_by: [place, id]
    fold: folds.py:fold
    fields: {{quantity: bigint, book: string}}
    output_dataset: {name}_history
    {"together: [portfolio]" if declaration.together else ""}
    valuation:
      output_dataset: {name}_daily
      calendar: {{dataset: opens, date: open_on}}
      references:
        {references}
      columns:
        value: {" * ".join(["quantity", *factors])}
        fresh: {"coalesce(local_date(price.on_date) = date, false)" if "price" in of else '"false"'}
        region: {"desk.region" if "desk" in of else "cast(null as string)"}
      {"where: quantity <> 0" if name in WITHOUT_NOTHING else ""}"""


FACTORS = (("price", "price"), ("fx", "rate"), ("factor", "times"), ("tariff", "times"), ("tax", "rate"))


def declare(name: str) -> Declaration:
    return Declaration(
        fold=fold,
        fields=("quantity", "book"),
        references=tuple(replace(USED[r.rstrip("!")], required=r.endswith("!")) for r in TIMELINES[name]),
        columns=choose_columns,
        where=(lambda names: names["quantity"] != 0) if name in WITHOUT_NOTHING else (lambda names: True),
        together=name in TOGETHER,
    )


DECLARATIONS = {name: declare(name) for name in TIMELINES}
EVERY_REFERENCE = Declaration(
    fold=fold,
    fields=(),
    references=tuple(USED.values()),
    columns=choose_columns,
    where=lambda names: True,
    together=False,
)
SOURCES = ["fact", "open", *USED]
YAML = f"""
project: ledger
timezone: UTC
settings: {{batch_rows: {BATCH_ROWS}}}
sources: {{{", ".join(f"{s}: {{files: data/{s}/*.jsonl}}" for s in SOURCES)}}}
datasets:{
    dataset(
        "fact",
        ["id"],
        {
            "id": "string",
            "portfolio": "string",
            "security": "string",
            "happened_on": "date",
            "place": "bigint",
            "amount": "bigint",
        },
    )
}{dataset("open", ["open_on"], {"open_on": "date"})}{"".join(reference_dataset(r) for r in USED.values())}
timelines:{"".join(timeline(name, declaration) for name, declaration in DECLARATIONS.items())}
"""


@dataclass
class Delivery:
    """Writes what changed from one version of the inputs to the next, as messages."""

    project: TestProject
    number: int = 0
    before: dict[str, dict[str, Any]] = field(default_factory=dict)

    def deliver(self, inputs: Inputs) -> None:
        self.number += 1
        for source, records in as_records(inputs).items():
            old = self.before.get(source, {})
            gone = [record | {"gone": True} for name, record in old.items() if name not in records]
            came = [record | {"gone": False} for name, record in records.items() if old.get(name) != record]
            if gone or came or self.number == 1:
                messages = [record | {"seq": self.number} for record in gone + came]
                self.project.lines(f"data/{source}/{self.number}.jsonl", *messages)
            self.before[source] = records


def as_records(inputs: Inputs) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {
        "fact": {
            name: {
                "id": name,
                "portfolio": fact.key[0],
                "security": fact.key[1],
                "happened_on": None if fact.on is None else day(fact.on).isoformat(),
                "place": fact.rank,
                "amount": fact.amount,
            }
            for name, fact in inputs.facts.items()
        },
        "open": {str(on): {"open_on": day(on).isoformat()} for on in inputs.calendar},
    }
    for name, rows in inputs.references.items():
        records[name] = {
            str(place): {f"k{n}": value for n, value in enumerate(place[0])}
            | ({} if place[1] is None else {"on_date": day(place[1]).isoformat()})
            | {column: row[column] for column in DOMAINS[name][1]}
            for place, row in rows.items()
        }
    return records


@dataclass
class Modelled:
    """A timeline of the model."""

    fold: FoldNode
    valuation: ValuationNode

    def run(self, inputs: Inputs, as_of: Date, batches: int | None) -> None:
        self.fold.run(inputs.facts)
        references = {r.name: inputs.references[r.name] for r in self.fold.declaration.references}
        now = Seen(history=self.fold.versions[-1], calendar=inputs.calendar, references=references)
        self.valuation.run(now, as_of, batches)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        return [
            (*key, day(on), *row.values.values(), row.epoch)
            for key, rows in table.rows.items()
            for on, row in rows.items()
        ]

    def superseded(self) -> list[tuple[Any, ...]]:
        return [
            (*old.key, day(old.on), *old.row.values.values(), old.row.epoch, old.superseded_by)
            for old in self.valuation.table.superseded
        ]

    def states(self) -> list[tuple[Any, ...]]:
        def shown(key: Key) -> date | None:
            watermark = self.valuation.watermark(key)
            return None if watermark is None else day(watermark)

        heads = self.valuation.table.heads
        return [(*key, head.epoch, shown(key), head.status) for key, head in heads.items()]


@dataclass(frozen=True, kw_only=True)
class Step:
    inputs: Inputs
    clock: Date
    batches: int | None


def make_steps(seed: int) -> Iterator[Step]:
    """A random history. The last run does all batches."""
    chance = Random(seed)
    inputs, clock = start_inputs(EVERY_REFERENCE, chance), 4
    for _ in range(8):
        inputs = change_facts(inputs, chance)
    for number in range(STEPS):
        for _ in range(chance.choice((1, 2, 3, 5)) if number else 0):
            inputs = change_inputs(EVERY_REFERENCE, inputs, chance)
        clock = max(0, min(DATES[-1], clock + chance.choice((-1, 0, 0, 1, 2))))
        batches = chance.choice((None, 1, 1, 2)) if number < STEPS - 1 else None
        yield Step(inputs=inputs, clock=clock, batches=batches)


def make_models() -> dict[str, Modelled]:
    return {
        name: Modelled(FoldNode(declaration), ValuationNode(declaration, BATCH_ROWS))
        for name, declaration in DECLARATIONS.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_publishes_what_the_model_publishes(
    make_project: Callable[[str], TestProject], seed: int
) -> None:
    project, models = make_project(YAML), make_models()
    project.write("folds.py", FOLD)
    delivery = Delivery(project)
    for number, step in enumerate(make_steps(seed)):
        delivery.deliver(step.inputs)
        noon = datetime.fromisoformat(f"{day(step.clock)}T12:00:00Z")
        outcome = project.run(RunRequest(as_of=noon, batches=step.batches), ok=False)
        errors = [r.error for r in outcome.results if r.error and r.slug not in ALLOWED]
        assert not errors, (number, errors)
        for name, model in models.items():
            model.run(step.inputs, step.clock, step.batches)
            check_task(outcome, f"{name}_daily", model)
            check(project, name, model, f"seed {seed}, step {number}, {name}")
        if number in (FIRST_VERIFIED, STEPS - 1):
            check_verified(project, models)


ALLOWED = {"fold-failed", "reference-missing"}


def check_verified(project: TestProject, models: Mapping[str, Modelled]) -> None:
    """Everything equals a full recompute, but for keys that fail or wait, and those are counted."""
    outcome = project.verify(*(f"{name}_{output}" for name in models for output in ("history", "daily")))
    verified = {dataset.dataset: dataset for dataset in outcome.datasets}
    results = {dataset.result for dataset in outcome.datasets}
    assert "equal" in results <= {"equal", "empty"}, outcome
    for name, model in models.items():
        for output, table in (("history", model.fold.versions[-1].table), ("daily", model.valuation.table)):
            statuses = [head.status for head in table.heads.values()]
            found = verified[f"{name}_{output}"]
            assert found.failed_keys == statuses.count("FAILED")
            assert found.reprocessing_keys == statuses.count("REPROCESSING")


def check_task(outcome: RunOutcome, node: str, model: Modelled) -> None:
    """Batches and waiting keys, as the task tells them."""
    task = next((result for result in outcome.results if result.node == node), None)
    statuses = [head.status for head in model.valuation.table.heads.values()]
    if task is None:
        assert "REPROCESSING" not in statuses
    else:
        assert task.counts["reprocessing"] == statuses.count("REPROCESSING")
        assert task.batches >= model.valuation.batches


def check(project: TestProject, name: str, model: Modelled, where: str) -> None:
    def found(columns: str, dataset: str) -> list[tuple[Any, ...]]:
        return sorted(project.query(f"SELECT portfolio, security, {columns} FROM {dataset}"), key=repr)

    def expect(rows: list[tuple[Any, ...]], columns: str, dataset: str) -> None:
        assert found(columns, dataset) == sorted(rows, key=repr), f"{where}: {dataset}"

    expect(model.rows(model.fold.versions[-1].table), "date, quantity, book, epoch", f"{name}_history")
    daily = "date, quantity, book, value, fresh, region, epoch"
    expect(model.states(), "epoch, watermark_on, status", f"{name}_state")
    expect(model.rows(model.valuation.table), daily, f"{name}_daily")
    expect(model.superseded(), f"{daily}, superseded_by", f"{name}_epochs")
