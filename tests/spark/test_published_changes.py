"""Random histories of published datasets against a model in plain Python.

Rows of odd keys come, change, go and return; children are replaced; views and triggers are edited, removed
and put back; several commits wait for the logs; runs die between their commits. After each run that ends,
logs and events are what the model says about the states that readers saw.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle, groupby
from typing import Any

import pytest

from strandline.app.planning import RunRequest
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.model.errors import CallError
from tests.harness import PATHS, TestProject
from tests.spark.published_model import Change, ModelTrigger, Row, Rows, differences, key_of, make_id, show

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]
DATASETS = ("items", "parts", "heavy", "totals")
TRIGGERS = ("alert", "heavy_alert", "part_alert", "total_alert")
YAML = """
project: shop
sources:
  messages: {files: "data/*.jsonl"}
datasets:
  items:
    from: messages
    where: "kind = 'item'"
    columns:
      price: {path: price, type: "decimal(10,2)"}
      made_on: {path: day, type: date}
      seen_at: {path: seen, type: timestamp}
      flag: {path: flag, type: boolean}
      name: name
      quantity: {path: quantity, type: bigint}
      note: note
      ratio: {path: ratio, type: double}
      gone: {path: gone, type: boolean, default: false}
    record_set: {key: [price, made_on, seen_at, flag, name], order_by: [_source_position], deleted: gone}
    source_at: {path: ts, type: timestamp_ns}
  parts:
    from: messages
    where: "kind = 'order'"
    explode: parts
    columns:
      order_id: orderId
      part_id: {path: item.id, type: int}
      quantity: {path: item.quantity, type: bigint}
      rank: {path: rank, type: bigint}
    record_set: {key: [order_id, part_id], order_by: [rank], children: replace}
    source_at: {path: ts, type: timestamp_ms}
  totals: {key: [note]}
jobs:
  - name: totals
    input_datasets: [items]
    output_dataset: totals
    incremental: {mode: keyed, key: [note]}
    sql: select note, sum(quantity) as quantity, count(*) as n from items group by note
publish: [items, parts, totals]
views:
  heavy:
    from: items
    where: {quantity: {_gte: @heavy}}
    calculated: {twice: "quantity * 2"}
triggers:
@triggers
"""
NAMES = ("", "a", "a:b", "b,c", "%00", "%3A", "größe", "日本", "العربية", "😀\u2028", "'\"\\", " ")
NOTES = (None, "x", "y:z", "%00")
TIMES = (1_700_000_000_000_000_001, 1_700_000_000_000_000_002, 1_700_000_000_000_000_003)


@dataclass(kw_only=True)
class Rule:
    dataset: str
    column: str
    fire: int
    clear: int | None

    def spell(self, name: str) -> str:
        clear = f"\n    clear: {{{self.column}: {{_lt: {self.clear}}}}}" if self.clear is not None else ""
        return (
            f"  {name}:\n    from: {self.dataset}\n    fire: {{{self.column}: {{_gte: {self.fire}}}}}{clear}"
        )

    def fires(self, row: Row) -> bool:
        return row[self.column] is not None and row[self.column] >= self.fire

    def clears(self, row: Row) -> bool:
        return row[self.column] is not None and self.clear is not None and row[self.column] < self.clear


@dataclass
class World:
    """The project, everything that was sent to it, and what readers saw after each run."""

    project: TestProject
    chance: random.Random
    paths: Any = field(default_factory=lambda: cycle(PATHS.values()))
    heavy: int = 10
    rules: dict[str, Rule] = field(default_factory=dict)
    last_rules: dict[str, Rule] = field(default_factory=dict)
    """Also of triggers that were removed."""
    sent: int = 0
    position: int = 0
    newest: dict[str, tuple[Row | None, int]] = field(default_factory=dict)
    """Of each item: its row, or None if it is gone, and its time."""
    orders: dict[str, tuple[int, str, dict[int, int], int]] = field(default_factory=dict)
    """Of each order: rank, tie-breaker, its parts, its time."""
    pools: list[tuple[Any, ...]] = field(default_factory=list)
    seen: dict[str, Rows] = field(default_factory=lambda: {name: {} for name in DATASETS})
    commits: dict[str, list[list[Change]]] = field(default_factory=lambda: {name: [] for name in DATASETS})
    folded: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TRIGGERS, 0))
    triggers: dict[str, ModelTrigger] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def declare(self) -> None:
        triggers = "\n".join(rule.spell(name) for name, rule in self.rules.items()) or "  {}"
        text = YAML.replace("@heavy", str(self.heavy)).replace("@triggers", triggers)
        if not self.rules:
            text = text.replace("triggers:\n  {}\n", "")
        self.project.declare(text)

    # What is sent

    def send(self, count: int) -> None:
        messages = [
            self.make_order() if self.chance.random() < 0.25 else self.make_item() for _ in range(count)
        ]
        self.sent += 1
        self.project.lines(f"data/{self.sent:04}.jsonl", *messages)
        self.note(f"sent {count}")

    def make_item(self) -> Row:
        chance = self.chance
        if not self.pools or (len(self.pools) < 14 and chance.random() < 0.4):
            self.pools.append(
                (
                    Decimal(chance.choice(("1.00", "-0.50", "12345678.90"))),
                    chance.choice((date(2024, 2, 29), date(1, 1, 1), date(1582, 10, 15), date(9999, 12, 31))),
                    datetime(2024, 1, 15, 10, 30, 45, chance.choice((0, 123456)), UTC),
                    chance.random() < 0.5,
                    chance.choice(NAMES),
                )
            )
        key = chance.choice(self.pools)
        quantity = chance.choice((None, 0, 5, 8, 9, 10, 11, 20))
        note, ratio = chance.choice(NOTES), chance.choice((None, 0.1, -0.0, 0.0, 1e300))
        ts, gone = chance.choice(TIMES), chance.random() < 0.2
        names = ("price", "made_on", "seen_at", "flag", "name")
        row = {**dict(zip(names, key, strict=True)), "quantity": quantity, "note": note, "ratio": ratio}
        self.newest[key_of(key)] = (None if gone else {**row, "gone": False}, ts)
        message = {**{name: show(value) for name, value in row.items()}, "kind": "item", "ts": ts}
        message["day"], message["seen"] = message.pop("made_on"), message.pop("seen_at")
        return {**message, "gone": True} if gone else message

    def make_order(self) -> Row:
        """An order may be sent late: only its rank counts. Ranks are never equal."""
        self.position += 1
        rank = self.position * 10 - self.chance.choice((0, 0, 0, 35))
        name = self.chance.choice(("o1", "o:2", "o,3"))
        parts = {part: self.chance.choice((1, 8, 12)) for part in range(4) if self.chance.random() < 0.6}
        ts = self.chance.choice((1_700_000_000_001, 1_700_000_000_002))
        if name not in self.orders or rank > self.orders[name][0]:
            self.orders[name] = (rank, "", parts, ts)
        items = [{"id": part, "quantity": quantity} for part, quantity in parts.items()]
        return {"kind": "order", "orderId": name, "parts": items, "rank": rank, "ts": ts}

    # What must be seen

    def expect(self) -> dict[str, tuple[Rows, dict[str, int] | None]]:
        """The rows of each dataset if everything that was sent is published, and the times of changes."""
        items = {key: row for key, (row, _) in self.newest.items() if row is not None}
        times = {key: ts for key, (_, ts) in self.newest.items()}
        parts, part_times = {}, {}
        for name, (rank, _, of_order, ts) in self.orders.items():
            for part in range(4):
                part_times[key_of((name, part))] = ts
                if part in of_order:
                    parts[key_of((name, part))] = {
                        "order_id": name,
                        "part_id": part,
                        "quantity": of_order[part],
                        "rank": rank,
                    }
        return {"items": (items, times), "parts": (parts, part_times)} | {
            "heavy": (self.make_heavy(items), times),
            "totals": (make_totals(items), None),
        }

    def make_heavy(self, items: Rows) -> Rows:
        return {
            key: {**row, "twice": row["quantity"] * 2}
            for key, row in items.items()
            if row["quantity"] is not None and row["quantity"] >= self.heavy
        }

    # Runs

    def run(self, select: str = "", failpoint: str = "") -> bool:
        """Run, and see what came of it. Every state is the old one or the new one."""
        before = dict(self.seen)
        expected = self.expect()
        self.note(f"run {select} {failpoint}".strip())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STRANDLINE_THRESHOLDS", next(self.paths))
            if failpoint:
                patch.setenv("STRANDLINE_FAILPOINTS", failpoint)
            request = RunRequest(select=select or None)
            outcome = self.project.run(request, ok=False)
        if not failpoint:
            errors = [f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error]
            assert outcome.exit_code == 0, self.tell("\n".join(errors))
        for name in DATASETS:
            state = self.read(name)
            wanted, times = expected[name]
            if name in ("heavy", "totals"):
                items = self.seen["items"]
                wanted = self.make_heavy(items) if name == "heavy" else make_totals(items)
            if name == "items" or not select:
                assert state in (before[name], wanted), self.tell(f"{name}: {state}")
            if not failpoint and not select:
                assert state == wanted, self.tell(f"{name}: {state} is not {wanted}")
            changes = differences(before[name], state, times, frozenset(self.rules))
            if changes:
                self.commits[name].append(changes)
            self.seen[name] = state
        return outcome.exit_code == 0

    def read(self, name: str) -> Rows:
        keys = {
            "items": ("price", "made_on", "seen_at", "flag", "name"),
            "heavy": ("price", "made_on", "seen_at", "flag", "name"),
            "parts": ("order_id", "part_id"),
            "totals": ("note",),
        }[name]
        columns = {
            "items": (*keys, "quantity", "note", "ratio", "gone"),
            "heavy": (*keys, "quantity", "note", "ratio", "gone", "twice"),
            "parts": (*keys, "quantity", "rank"),
            "totals": ("note", "quantity", "n"),
        }[name]
        try:
            rows = self.project.query(f"select {', '.join(columns)} from {name}")
        except CallError as error:
            if error.slug == "never-built" and not self.seen[name]:
                return {}
            raise
        shaped = [dict(zip(columns, row, strict=True)) for row in rows]
        return {key_of(row[column] for column in keys): row for row in shaped}

    # What must be told

    def check(self) -> None:
        """After a run that ended: logs and events."""
        for name in DATASETS:
            self.check_log(name)
        for name in self.rules:
            self.check_events(name)

    def check_log(self, name: str) -> None:
        columns = ("version", "position", "operation", "key", "source_timestamp", "fields", "data", "before")
        log = self.project.query(
            f"select {', '.join(columns)} from {name}_changes order by version, position"
        )
        groups = [list(group) for _, group in groupby(log, lambda row: row[0])]
        expected = self.commits[name]
        assert len(groups) == len(expected), self.tell(f"{name}: {len(groups)} commits, not {len(expected)}")
        for group, changes in zip(groups, expected, strict=True):
            assert [row[1] for row in group] == list(range(len(group)))
            shown = [
                (row[2], row[3], list(row[5]), json.loads(row[6]), json.loads(row[7] or "{}"))
                for row in group
            ]
            wanted = [
                (
                    change.operation,
                    change.key,
                    change.fields,
                    as_json(change.row or change.old),
                    {k: v for k, v in as_json(change.old).items() if k in change.fields},
                )
                for change in changes
            ]
            assert shown == wanted, self.tell(f"{name}")
            for row, change in zip(group, changes, strict=True):
                if change.source_timestamp is not None and name != "heavy":
                    assert row[4] == change.source_timestamp, self.tell(f"{name}: {change} {row[4]}")
                assert row[4] is not None

    def check_events(self, name: str) -> None:
        events = self.project.query(
            f"select event_type, key, source_timestamp, n, event_id, quiet, data from {name}"
            " order by recorded_at, version, position"
        )
        counts: Counter[tuple[str, int]] = Counter()
        for _, key, ts, n, event_id, _, _ in events:
            counts[key, ts] += 1
            assert n == counts[key, ts], self.tell(name)
            assert event_id == make_id(name, key, ts, n), self.tell(name)
        model, rule = self.triggers[name], self.rules[name]
        commits = self.commits[rule.dataset]
        for changes in commits[self.folded[name] :]:
            model.fold(changes)
        self.folded[name] = len(commits)
        told = [(event[0], event[1], json.loads(event[6])) for event in events if not event[5]]
        wanted = [(kind, key, as_json(change.row or change.old)) for kind, key, change in model.events]
        assert told == wanted, self.tell(f"{name}: {told} is not {wanted}")

    def set_rule(self, name: str, rule: Rule) -> None:
        """Declare a trigger or change it. What was not told before does not count."""
        if name not in self.triggers:
            self.folded[name] = len(self.commits[rule.dataset])  # what came before is not read
        model = self.triggers.setdefault(name, ModelTrigger(name=name, fire=rule.fires, clear=None))
        if rule != self.last_rules.get(name):  # the same one goes on where it was
            model.change_rule(rule.fires, rule.clears if rule.clear is not None else None)
        self.rules[name] = self.last_rules[name] = rule
        self.declare()
        self.note(f"{name}: {rule}")

    def drop_rule(self, name: str) -> None:
        del self.rules[name]
        self.declare()
        self.note(f"{name} is removed")

    def note(self, text: str) -> None:
        self.log.append(text)

    def tell(self, what: str) -> str:
        return f"{what}\n" + "\n".join(self.log)


def make_totals(items: Rows) -> Rows:
    groups: dict[Any, list[Row]] = {}
    for row in items.values():
        groups.setdefault(row["note"], []).append(row)
    return {
        key_of((note,)): {
            "note": note,
            "quantity": sum(amounts) if amounts else None,
            "n": len(rows),
        }
        for note, rows in groups.items()
        for amounts in ([row["quantity"] for row in rows if row["quantity"] is not None],)
    }


def as_json(row: Row | None) -> Row:
    return {name: show(value) for name, value in (row or {}).items()}


NODES = (
    *("messages", "items_facts", "items", "heavy", "totals", "parts"),
    *(f"{name}_changes" for name in DATASETS),
    *TRIGGERS,
)
POINTS = ("before-write", "after-write", "before-record", "after-record", "after-prepare")
RULES = {
    "alert": ("items", "quantity", ((10, 9), (10, None), (9, 5), (11, 8))),
    "heavy_alert": ("heavy", "twice", ((20, None), (22, 18), (40, 20))),
    "part_alert": ("parts", "quantity", ((8, None), (12, 8), (12, 2))),
    "total_alert": ("totals", "quantity", ((15, 5), (20, None), (30, 29))),
}


def choose_rule(chance: random.Random, name: str) -> Rule:
    dataset, column, limits = RULES[name]
    fire, clear = chance.choice(limits)
    return Rule(dataset=dataset, column=column, fire=fire, clear=clear)


def take_step(world: World) -> None:
    chance = world.chance
    match chance.choices(
        ("send", "wait", "die", "view", "rule", "drop", "rebuild"), (30, 20, 25, 8, 10, 5, 5)
    )[0]:
        case "send":
            world.send(chance.randrange(1, 8))
        case "wait":
            for _ in range(chance.randrange(1, 4)):
                world.send(chance.randrange(1, 6))
                world.run("+items")
        case "die":
            for _ in range(chance.randrange(1, 3)):
                world.send(chance.randrange(1, 6))
                world.run(failpoint=f"{chance.choice(POINTS)}:{chance.choice(NODES)}=raise")
        case "view":
            world.heavy = chance.choice((5, 9, 10, 11))
            world.declare()
            world.note(f"heavy: {world.heavy}")
        case "rule":
            name = chance.choice(TRIGGERS)
            world.set_rule(name, choose_rule(chance, name))
        case "drop":
            if world.rules:
                world.drop_rule(chance.choice(list(world.rules)))
        case "rebuild":
            rebuild_catalog(world.project.folder)
            world.note("rebuild-catalog")
    world.run()
    world.check()


@pytest.mark.parametrize("seed", [1])
def test_logs_and_events_are_those_of_the_model(seed: int, make_project: Make) -> None:
    world = World(make_project("project: shop\n"), random.Random(seed))
    for name in TRIGGERS[:3]:
        world.set_rule(name, choose_rule(world.chance, name))

    for _ in range(5):
        take_step(world)

    assert all(world.commits[name] for name in DATASETS)
    assert sum(len(trigger.events) for trigger in world.triggers.values()) >= 2
