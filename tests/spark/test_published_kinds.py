"""Change logs, views and triggers over what is computed: timelines, entities, jobs and chains.

After each run, the log of each dataset is the difference of the states that readers saw, its view is what
plain Python makes of the dataset, and its trigger has told what a fold of those differences tells.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import cycle

import pytest

from strandline.app.query import query
from strandline.app.workspace import open_workspace
from tests.harness import PATHS, TestProject, at
from tests.spark.published_model import Change, ModelTrigger, Row, Rows, differences, key_of, show

pytestmark = pytest.mark.spark

YAML = """
project: kinds
timezone: UTC
sources:
  trade_lines: {files: "trades/*.jsonl"}
  quote_lines: {files: "quotes/*.jsonl"}
  block_lines: {files: "blocks/*.jsonl"}
datasets:
  trades:
    from: trade_lines
    columns:
      id: id
      book: book
      item: what
      traded_on: {path: on, type: date}
      amount: {path: n, type: bigint}
      seq: {path: seq, type: bigint}
      gone: {path: gone, type: boolean}
    record_set: {key: [id], order_by: [seq], deleted: gone}
  quotes:
    from: quote_lines
    columns:
      item: what
      quoted_on: {path: on, type: date}
      price: {path: price, type: "decimal(12,2)"}
      seq: {path: seq, type: bigint}
    record_set: {key: [item, quoted_on], order_by: [seq]}
  blocks:
    from: block_lines
    columns:
      number: {path: number, type: bigint}
      hash: hash
      parent: parent
      amount: {path: n, type: bigint}
    event_stream: {identity: [number, hash]}
  per_day: {key: [traded_on, book]}
  per_item: {key: [item]}
chains:
  chain: {from: blocks, number: number, hash: hash, parent: parent, head: longest, order_by: [amount]}
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
      calendar: weekdays
      references:
        quote: {dataset: quotes, on: [item], date: quoted_on}
      columns:
        worth: amount * quote.price
entities:
  book:
    id: book
    by: {trades: book}
    variables:
      amount: {from: trades, select: "sum(amount)"}
      trades: {from: trades, select: "count(*)"}
      items: {from: trades, select: "count(distinct item)"}
jobs:
  - name: per_day
    incremental: {mode: partition}
    partition: {column: traded_on, unit: day}
    input_datasets: [trades]
    output_dataset: per_day
    sql: select traded_on, book, sum(amount) as amount from trades group by traded_on, book
  - name: per_item
    incremental: {mode: full}
    input_datasets: [trades]
    output_dataset: per_item
    sql: select item, sum(amount) as amount from trades group by item
publish: [history, daily, book, per_day, per_item, chain]
views:
"""
KEYS = {
    "history": ("book", "item", "date"),
    "daily": ("book", "item", "date"),
    "book": ("book",),
    "per_day": ("traded_on", "book"),
    "per_item": ("item",),
    "chain": ("hash",),
}
LEAST, FIRE, CLEAR = 2, 5, 3
FOLD = """
def add(state, facts):
    return {"amount": (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)}
"""
NOW = "2024-01-05T12:00:00+00:00"
DAYS = [date(2024, 1, day).isoformat() for day in range(2, 6)]


def spell_published() -> str:
    views = "".join(
        f"  some_{name}:\n    from: {name}\n    where: {{amount: {{_gte: {LEAST}}}}}\n"
        '    calculated: {twice: "amount * 2"}\n'
        for name in KEYS
    )
    fire = f"fire: {{amount: {{_gte: {FIRE}}}}}, clear: {{amount: {{_lt: {CLEAR}}}}}"
    triggers = "".join(f"  {name}_alert: {{from: {name}, {fire}}}\n" for name in KEYS)
    return f"{views}triggers:\n{triggers}"


@dataclass
class Sent:
    """What is sent, at random. Trades are late, move and go; branches of blocks overtake each other."""

    project: TestProject
    chance: random.Random
    step: int = 0
    trades: dict[str, Row] = field(default_factory=dict)
    blocks: list[tuple[int, str]] = field(default_factory=lambda: [(0, "")])

    def send(self) -> None:
        self.step += 1
        chance, step = self.chance, self.step
        messages = []
        for nth in range(8):
            name = chance.choice([*self.trades, f"t{step}{nth}"])
            gone = name in self.trades and chance.random() < 0.3
            trade = {
                "id": name,
                "book": chance.choice(("b:1", "b,2")),
                "what": chance.choice(("x", "é")),
                "on": chance.choice(DAYS),
                "n": chance.randrange(-2, 9),
                "seq": 10 * step + nth,
                "gone": gone,
            }
            self.trades[name] = trade
            messages.append(trade)
        self.project.lines(f"trades/{step}.jsonl", *messages)
        quote = {"what": "x", "on": chance.choice(DAYS), "price": chance.randrange(1, 9), "seq": step}
        self.project.lines(f"quotes/{step}.jsonl", quote)
        self.project.lines(f"blocks/{step}.jsonl", *(self.mine(nth) for nth in range(4)))

    def mine(self, nth: int) -> Row:
        number, parent = self.chance.choice(self.blocks[-3:])
        mined: Row = {
            "number": number + 1,
            "hash": f"h{self.step}{nth}",
            "parent": parent,
            "n": self.chance.randrange(3, 9),
        }
        self.blocks.append((number + 1, mined["hash"]))
        return mined


def read(project: TestProject, name: str, keys: tuple[str, ...]) -> Rows:
    with open_workspace(project.folder) as workspace:
        answer = query(workspace, f"SELECT * FROM {name}")
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    found = {key_of(row[c] for c in keys): {n: show(value) for n, value in row.items()} for row in rows}
    assert len(found) == len(rows)
    return found


def read_log(project: TestProject, name: str, after: int) -> list[tuple[object, ...]]:
    rows = project.query(
        "SELECT position, operation, key, fields, data, before, source_timestamp, version"
        f" FROM {name}_changes ORDER BY version, position"
    )[after:]
    assert all(row[6] is not None for row in rows)
    return [
        (position, operation, key, list(fields), json.loads(data), json.loads(before or "{}"))
        for position, operation, key, fields, data, before, _, _ in rows
    ]


def expect_log(changes: list[Change]) -> list[tuple[object, ...]]:
    return [
        (
            position,
            change.operation,
            change.key,
            change.fields,
            change.row or change.old,
            {name: change.old[name] for name in change.fields} if change.old is not None else {},
        )
        for position, change in enumerate(changes)
    ]


def fold(project: TestProject, name: str) -> dict[str, Row]:
    """The log from its start."""
    state: dict[str, Row] = {}
    for _, operation, key, _, data, _ in read_log(project, name, 0):
        assert isinstance(data, dict)
        if operation == "DELETE":
            del state[str(key)]
        else:
            state[str(key)] = data
    return state


def make_view(rows: Rows) -> Rows:
    chosen = {key: row for key, row in rows.items() if row["amount"] is not None and row["amount"] >= LEAST}
    return {key: {**row, "twice": row["amount"] * 2} for key, row in chosen.items()}


def test_whatever_is_computed_can_be_published(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, chance = make_project(YAML + spell_published()), random.Random(12)
    project.write("folds.py", FOLD)
    sent, paths = Sent(project, chance), cycle(PATHS.values())
    seen: dict[str, Rows] = {name: {} for name in (*KEYS, *(f"some_{name}" for name in KEYS))}
    told = dict.fromkeys(seen, 0)
    triggers = {
        name: ModelTrigger(
            name=f"{name}_alert",
            fire=lambda row: row["amount"] is not None and row["amount"] >= FIRE,
            clear=lambda row: row["amount"] is not None and row["amount"] < CLEAR,
        )
        for name in KEYS
    }
    operations: dict[str, set[str]] = {name: set() for name in KEYS}
    for _ in range(3):
        sent.send()
        monkeypatch.setenv("STRANDLINE_THRESHOLDS", next(paths))

        project.run(at(NOW))

        for name, keys in KEYS.items():
            view = f"some_{name}"
            states = {name: read(project, name, keys), view: read(project, view, keys)}
            assert states[view] == make_view(states[name]), name
            for one, state in states.items():
                changes = differences(seen[one], state, None, frozenset({f"{name}_alert"}))
                log = read_log(project, one, told[one])
                assert log == expect_log(changes), one
                seen[one], told[one] = state, told[one] + len(log)
                if one == name:
                    triggers[name].fold(changes)
                    operations[name] |= {change.operation for change in changes}
            events = project.query(
                f"SELECT event_type, key, data, quiet FROM {name}_alert ORDER BY version, position"
            )
            wanted = [(kind, key, c.row or c.old, False) for kind, key, c in triggers[name].events]
            assert [(kind, key, json.loads(data), quiet) for kind, key, data, quiet in events] == wanted, name

    for name, state in seen.items():
        assert fold(project, name) == state, name
    assert all({"INSERT", "UPDATE"} <= found or name == "chain" for name, found in operations.items())
    assert {"INSERT", "DELETE"} <= operations["chain"]
    assert all(trigger.events for trigger in triggers.values())
    project.assert_verified(*(f"{name}_alert" for name in KEYS), *(f"{name}_changes" for name in seen))
    project.run(replace(at(NOW), backfill="trades"))
    assert {name: len(read_log(project, name, 0)) for name in seen} == told
