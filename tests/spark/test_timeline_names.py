"""Timelines with names and dates that are easily taken for something else equal an oracle in plain Python.

Columns are called like keywords, like columns of the engine, or in other scripts. Facts are rows of a job
that has equal ones. Dates are far apart, and a calendar comes late with hundreds of them, which are published
in batches. Key columns and the column of `together` may be NULL.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from strandline.compute.valuation import scope
from tests.harness import TestProject, at

pytestmark = pytest.mark.spark

YAML = """
project: odd
timezone: Pacific/Apia
settings: {batch_rows: 1400}
sources: {told: {files: "told/*.jsonl"}}
datasets:
  move:
    from: told
    where: about = 'moves'
    columns: {id: id, k: k, key: {path: key, type: int}, größe: größe, date: {path: date, type: date},
      end: {path: end, type: bigint}, value: {path: value, type: "decimal(20,3)"},
      seq: {path: seq, type: bigint}, gone: {path: gone, type: boolean}}
    record_set: {key: [id], order_by: [seq], deleted: gone}
  tag:
    from: told
    where: about = 'tags'
    columns: {größe: größe, _px: {path: px, type: bigint}, end: {path: end, type: string},
      seq: {path: seq, type: bigint}}
    record_set: {key: [größe], order_by: [seq]}
  quote:
    from: told
    where: about = 'quotes'
    columns: {key: {path: key, type: bigint}, date: {path: date, type: date},
      select: {path: px, type: bigint}, seq: {path: seq, type: bigint}}
    record_set: {key: [key, date], order_by: [seq]}
  open:
    from: told
    where: about = 'opens'
    columns: {date: {path: date, type: date}, seq: {path: seq, type: bigint},
      gone: {path: gone, type: boolean}}
    record_set: {key: [date], order_by: [seq], deleted: gone}
jobs:
  - name: moved
    input_datasets: [move]
    output_dataset: moved
    incremental: {mode: keyed, key: [id]}
    sql: select id, k, key, `größe`, date, `end`, value from move
      union all select id, k, key, `größe`, date, `end`, value from move
  - name: per_k
    input_datasets: [odd_daily]
    output_dataset: per_k
    incremental: {mode: keyed, key: [k]}
    sql: select k, count(*) as n, sum(worth) as worth from odd_daily group by k
  - name: per_place
    input_datasets: [odd_daily]
    output_dataset: per_place
    incremental: {mode: keyed, key: [größe]}
    sql: select `größe`, count(*) as n, sum(worth) as worth from odd_daily group by `größe`
timelines:
  odd:
    key: [k, key, größe]
    together: [k]
    facts: moved
    date: date
    order_by: [end]
    fold: folds.py:fold
    fields: {end: bigint, value: "decimal(10,2)", Status: string, place: bigint, select: bigint}
    output_dataset: odd_history
    valuation:
      output_dataset: odd_daily
      calendar: {dataset: open, date: date}
      references:
        start: {dataset: tag, on: [größe]}
        h: {dataset: quote, on: [key], date: date}
      columns:
        found: start._px + `end`
        worth: coalesce(h.`select`, 0) * place + coalesce(start._px, 0)
        "on": h.date
        "größer": start.`end`
"""
FOLD = """
def fold(state, facts):
    state = state or {"value": 0, "place": 0}
    for fact in facts:
        state["value"] += fact["value"]
        state["place"] += 1
        state["end"] = fact["end"]
    state["status"] = None if state["place"] % 4 else "even"
    state["select"] = state["place"] ** 2
    return state
"""
Key = tuple[str | None, int | None, str]


@dataclass
class World:
    project: TestProject
    seq: int = 0
    moves: dict[str, dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    quotes: dict[tuple[int, date], int] = field(default_factory=dict)
    opens: set[date] = field(default_factory=set)

    def write(self, source: str, *messages: dict[str, Any]) -> None:
        self.seq += 1
        told = ({"about": source, "seq": self.seq} | message for message in messages)
        self.project.lines(f"told/{self.seq:05}.jsonl", *told)

    def move(self, key: Key, on: date) -> None:
        number = len(self.moves)
        k, n, size = key
        move = {"id": f"m{number}", "k": k, "key": n, "größe": size, "date": str(on), "end": number}
        self.moves[f"m{number}"] = move | {"value": str(Decimal(number * 37 - 500) / 1000)}
        self.write("moves", self.moves[f"m{number}"])

    def tag(self, size: str, px: int) -> None:
        self.tags[size] = px
        self.write("tags", {"größe": size, "px": px, "end": f"end of {size}"})

    def quote(self, key: int, on: date, px: int) -> None:
        self.quotes[key, on] = px
        self.write("quotes", {"key": key, "date": str(on), "px": px})

    def open(self, *days: date) -> None:
        self.opens |= set(days)
        self.write("opens", *({"date": str(day)} for day in days))

    def close(self, *days: date) -> None:
        self.opens -= set(days)
        self.write("opens", *({"date": str(day), "gone": True} for day in days))

    def expect(self, last: date) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        by_key: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for move in self.moves.values():
            by_key[move["k"], move["key"], move["größe"]] += [move, move]
        rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for key, moves in by_key.items():
            for day in self.opens:
                held = sorted((m for m in moves if m["date"] <= day.isoformat()), key=lambda m: m["end"])
                held.sort(key=lambda m: m["date"])
                if held and day <= last:
                    rows[*key, day] = self._value(key, day, held)
        return rows

    def _value(self, key: Key, day: date, held: list[dict[str, Any]]) -> tuple[Any, ...]:
        n, end, px = len(held), held[-1]["end"], self.tags.get(key[2])
        value = sum((Decimal(m["value"]) for m in held), Decimal(0))
        quoted = [on for k, on in self.quotes if k == key[1] and on <= day]
        price = self.quotes[key[1], max(quoted)] if key[1] is not None and quoted else None
        return (
            end,
            round_half_up(value),
            None if n % 4 else "even",
            n,
            n * n,
            None if px is None else px + end,
            (price or 0) * n + (px or 0),
            max(quoted, default=None),
            None if px is None else f"end of {key[2]}",
        )


def round_half_up(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), "ROUND_HALF_UP")


COLUMNS = '"end", value, status, place, "select", found, worth, "on", "größer"'


def read(project: TestProject) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found = project.query(f'SELECT k, "key", "größe", date, {COLUMNS} FROM odd_daily')
    rows = {row[:4]: row[4:] for row in found}
    assert len(rows) == len(found)
    return rows


def check(world: World, last: date) -> None:
    found, expected = read(world.project), world.expect(last)
    assert set(found) == set(expected), sorted(set(found) ^ set(expected), key=repr)[:5]
    differing = [(place, found[place], expected[place]) for place in found if found[place] != expected[place]]
    assert not differing, differing[:3]
    check_job(world.project, "per_k", "k", 0, expected)
    check_job(world.project, "per_place", '"größe"', 2, expected)


def check_job(
    project: TestProject, job: str, column: str, place: int, rows: dict[tuple[Any, ...], tuple[Any, ...]]
) -> None:
    sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for key, values in rows.items():
        sums[key[place]][0] += 1
        sums[key[place]][1] += values[6]
    found = {row[0]: list(row[1:]) for row in project.query(f"SELECT {column}, n, worth FROM {job}")}
    assert found == sums, job


KEYS: list[Key] = [(k, n, s) for k in (None, "a") for n in (None, 1) for s in ("x", "😀")]
KEYS += [("", 2, "x"), ("é", 2, "x")]
LAST = date(2024, 1, 5)
NOW = at("2024-01-05T10:59:00Z")
"""Apia is 13 hours ahead: there it is a minute before the sixth."""


def test_odd_names_far_dates_and_a_late_calendar(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(YAML)
    project.write("folds.py", FOLD)
    world = World(project)
    world.open(date(1, 1, 1), date(1582, 10, 10), date(2024, 1, 2), LAST, date(9999, 12, 31))
    for number, key in enumerate(KEYS):
        world.move(key, [date(1, 1, 1), date(1582, 10, 10), date(2015, 1, 3), date(2024, 1, 6)][number % 4])
    world.tag("x", 7)
    world.quote(1, date(1500, 1, 1), 3)
    world.quote(2, date(2024, 1, 3), 5)
    project.run(NOW)
    check(world, LAST)
    complete = world.expect(LAST)

    # A calendar of hundreds of dates comes late, with one at the end of time.
    world.open(*(date(2015, 1, 1) + timedelta(days=10 * n) for n in range(300)), date(9999, 12, 30))
    world.close(date(1582, 10, 10), date(9999, 12, 31))
    monkeypatch.setattr(scope, "MOST_PAIRS", 0)  # the dates that are read are one range
    project.run(replace(NOW, batches=1))
    world.move((None, 1, "x"), date(2019, 2, 3))  # a fact comes while keys wait
    monkeypatch.undo()
    monkeypatch.setattr(scope, "MOST_RANGES", 0)  # the same, found in another way
    project.run(replace(NOW, batches=1))
    published, wanted = read(project), world.expect(LAST)
    assert published not in (complete, wanted)
    for k in {key[0] for key in KEYS}:  # each `k` is whole, in its old or its new state
        assert of_group(published, k) in (of_group(complete, k), of_group(wanted, k))
    assert of_group(published, None) == of_group(wanted, None)
    check_job(project, "per_k", "k", 0, published)
    check_job(project, "per_place", '"größe"', 2, complete)  # it has no `k`, so it waits for all

    project.run(NOW)
    check(world, LAST)
    project.assert_verified("odd")


def of_group(rows: dict[tuple[Any, ...], tuple[Any, ...]], k: str | None) -> dict[tuple[Any, ...], Any]:
    return {place: values for place, values in rows.items() if place[0] == k}
