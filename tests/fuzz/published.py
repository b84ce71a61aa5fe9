"""The whole engine: many jobs over changing record sets, run after run, against a full recompute.

The recompute does not share code with the engine.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import sqlglot
from pyspark.errors import PySparkException

from strandline.sql.parse import find_tables
from tests.fuzz.laws import Case, Run, Tables, make_case
from tests.fuzz.queries import KEYS, VALUES, Row
from tests.harness import TestProject

NAMES = ("a", "b", "c")
TYPES = {"id": "bigint", "k1": "string", "k2": "bigint", "v": "bigint", "w": "string"}


@dataclass(frozen=True)
class Published:
    """Results of some jobs: the number of comparisons with each recompute, and the differences."""

    jobs: int
    compared: Counter[str]
    wrong: tuple[str, ...]


def accepted_cases(start: int, most: int, run: Run) -> Iterator[Case]:
    """Cases over a, b and c whose rows can be published: k1, k2, v and w, each of one type."""
    seed = start
    while most:
        case = make_case(seed, KEYS)
        seed += 1
        if case is None or " o " in case.sql or "o s" in case.sql:
            continue
        try:
            names, _ = run(case.sql, case.tables)
        except (PySparkException, duckdb.Error):
            continue
        if names in (("k1", "k2", "v", "w"), ("id", "k1", "k2", "v", "w"), ("id", "k1", "v", "k2", "w")):
            most -= 1
            yield case


def make_yaml(cases: list[Case]) -> str:
    lines = ["project: fuzzed", 'settings: {spark: {master: "local[2]"}}', "sources:"]
    lines += [f'  {name}_log: {{files: "{name}/*.jsonl"}}' for name in NAMES]
    lines += ["datasets:"]
    for name in NAMES:
        columns = ", ".join(f"{c}: {{path: {c}, type: {TYPES[c]}}}" for c in KEYS.tables[name])
        order = "record_set: {key: [id], order_by: [_source_position], deleted: \"w = 'gone'\"}"
        lines += [f"  {name}: {{from: {name}_log, columns: {{{columns}}}, {order}, guard: false}}"]
    lines += ["jobs:"]
    for number, case in enumerate(cases):
        used = [name for name in NAMES if name in _tables_of(case)]
        related = ", ".join(f"{name}: whole" for name in used if name not in case.proved)
        inputs = f", inputs: {{{related}}}" if related else ""
        lines += [
            f"  - name: j{number}",
            f"    input_datasets: [{', '.join(used)}]",
            f"    output_dataset: j{number}",
        ]
        lines += [f"    incremental: {{mode: keyed, key: [k1, k2]{inputs}}}", f"    sql: |\n      {case.sql}"]
    return "\n".join(lines) + "\n"


def _tables_of(case: Case) -> set[str]:
    return {table.name.lower() for table in find_tables(sqlglot.parse_one(case.sql, dialect="spark"))}


class World:
    """The latest row by id, computed from the sources without the engine."""

    def __init__(self, project: TestProject, chance: random.Random) -> None:
        self.project, self.chance, self.step = project, chance, 0
        self.rows: dict[str, dict[int, Row]] = {name: {} for name in NAMES}

    def change(self, most: int) -> None:
        """Add, change, move and remove rows.

        Tables that jobs read whole seldom change after the first time.
        """
        self.step += 1
        for name in NAMES:
            if self.step > 1 and self.chance.random() < (0.9 if name == "c" else 0.3):
                continue
            columns, messages = KEYS.tables[name], {}
            for _ in range(self.chance.randrange(1, most)):
                number = self.chance.randrange(12)
                row = {c: self.chance.choice(VALUES[kind]) for c, kind in columns.items()} | {"id": number}
                if self.chance.random() < 0.25:
                    row["w"] = "gone"
                messages[number] = row
            for number, row in messages.items():
                self.rows[name].pop(number, None)
                if row["w"] != "gone":
                    self.rows[name][number] = tuple(row.values())
            self.project.lines(f"{name}/{self.step}.jsonl", *messages.values())

    def tables(self) -> Tables:
        return {name: (KEYS.tables[name], list(rows.values())) for name, rows in self.rows.items()}


def compare(
    project: TestProject, cases: list[Case], chance: random.Random, runs: dict[str, Run], times: int = 3
) -> Published:
    """Run several times and compare what is published with each recompute, by column name."""
    project.declare(make_yaml(cases))
    world = World(project, chance)
    compared: Counter[str] = Counter()
    wrong: list[str] = []
    for time in range(times):
        world.change(10 if time == 0 else 4)
        project.run()
        for number, case in enumerate(cases):
            there = Counter(project.query(f"select k1, k2, v, w from j{number}"))
            for engine, run in runs.items():
                try:
                    names, rows = run(case.sql, world.tables())
                except (PySparkException, duckdb.Error):
                    continue
                compared[engine] += 1
                places = [names.index(c) for c in ("k1", "k2", "v", "w")]
                if (wanted := Counter(tuple(row[p] for p in places) for row in rows)) != there:
                    wrong.append(
                        f"run {time + 1}, {engine}: {case}\n  wanted {wanted}\n  published {there}\n"
                        f"  {world.rows}"
                    )
    return Published(jobs=len(cases), compared=compared, wrong=tuple(wrong))
