"""Random histories of `tests/property/entity_world.py` as files of a project, and what it must publish."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.harness import TestProject
from tests.property.entity_play import Play
from tests.property.entity_world import COMPUTED, RECORDS, STREAM, Row, Variable, weigh

HAPPENINGS = (
    *("fact", "move", "delete", "resurrect", "redate", "late", "event", "event", "computed", "uncomputed"),
    *("forward", "back"),
)
LOOKED_UP = "looked_up"
"""The stream, whose rows find their owners through the record of the same number."""
ORIGIN = datetime.fromisoformat("2024-01-01T00:00:00+00:00")
"""Day 0."""
Values = list[int]


@dataclass(frozen=True)
class Spec:
    """A variable: as it is declared, and in plain Python."""

    name: str
    dataset: str
    select: str
    value: Callable[[Values], Any]
    state: Callable[[Values], list[str | None]] | None = None
    """What `_state` has of it, if it has anything."""
    least: int = 0
    window: int | None = None
    default: int | None = None
    spelling: str = "window"
    """Where the window is written: in its own key, in `where`, or in the aggregate."""

    @property
    def of_world(self) -> Variable:
        return Variable(
            name=self.name, dataset=self.dataset, aggregate="", least=self.least, window=self.window
        )

    def declare(self) -> str:
        days = f"at >= :as_of - INTERVAL {self.window} DAYS AND at < :as_of"
        select, where = self.select, f"value >= {self.least}"
        more = ""
        if self.window and self.spelling == "window":
            more = f", window: {{column: at, last: {self.window} days}}"
        elif self.window and self.spelling == "where":
            where = f"{where} AND {days}"
        elif self.window:
            select = f"{select} FILTER (WHERE {days})"
        if self.default is not None:
            more += f", default: {self.default}"
        dataset = self.dataset
        if dataset == LOOKED_UP:
            dataset, more = STREAM, f"{more}, by: {{via: records, on: {{record: record}}}}"
        return f'{{from: {dataset}, select: "{select}", where: "{where}"{more}}}'


def total(values: Values) -> Any:
    return sum(values) if values else None


def money(number: Decimal | int) -> Decimal:
    return Decimal(number).quantize(Decimal("0.01"))


def average_of_money(values: Values) -> Any:
    if not values:
        return None
    return (Decimal(sum(values)) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)


def thousands(values: Values) -> Any:
    return sum(values) * 1000 // len(values) if values else None


def kept_total(values: Values) -> list[str | None]:
    return [str(len(values)), str(sum(values))]


def kept_money(values: Values) -> list[str | None]:
    return [str(len(values)), str(money(sum(values)))]


def kept_count(values: Values) -> list[str | None]:
    return [str(len(values))]


SPECS = (
    Spec("n", RECORDS, "count(value)", len),
    Spec("n3", RECORDS, "count(value)", len, window=3),
    Spec("s", RECORDS, "sum(value)", total, kept_count, least=2, default=7),
    Spec("s8", RECORDS, "sum(amount)", lambda v: money(sum(v)) if v else None, kept_count, window=8),
    Spec("a", RECORDS, "avg(value)", lambda v: sum(v) / len(v) if v else None, kept_total, window=3),
    Spec("a8", RECORDS, "avg(amount)", average_of_money, kept_money, window=8, spelling="where"),
    Spec("d", RECORDS, "count(distinct value)", lambda v: len(set(v)), window=8),
    Spec("m", RECORDS, "max(value)", lambda v: max(v, default=None)),
    Spec("e", STREAM, "count(value)", len, window=3, spelling="leaf"),
    Spec("es", STREAM, "sum(value)", total, kept_count, window=8, spelling="leaf"),
    Spec("best", STREAM, "max(value)", lambda v: max(v, default=None)),
    Spec("worst", STREAM, "min(value)", lambda v: min(v, default=9), kept_count, default=9),
    Spec("recent", STREAM, "max(value)", lambda v: max(v, default=None), window=8),
    Spec("c", COMPUTED, "sum(value)", total, kept_count),
    Spec("c8", COMPUTED, "count(value)", len, window=8),
    Spec("via", LOOKED_UP, "sum(value)", total, kept_count, window=8),
    Spec("vias", LOOKED_UP, "count(distinct value)", lambda v: len(set(v))),
)
RATIO = "sum(value) * 1000 div nullif(count(value), 0) + 0 * coalesce(max(value), 0)"
"""An expression of three leaves, of which `_state` has all."""
ENTITIES = ("added", "again", "whole")
COLUMNS = ", ".join(["owner", *(spec.name for spec in SPECS), "ratio", "_state"])


def declare() -> str:
    """The project: the same variables for three entities, which are kept up to date in different ways."""
    variables = "".join(f"      {spec.name}: {spec.declare()}\n" for spec in SPECS)
    ratio = f'      ratio: {{from: {STREAM}, select: "{RATIO}"}}\n'
    columns = (
        "{record: {path: record, type: int}, owner: {path: owner, type: bigint},"
        " value: {path: value, type: int}, amount: {path: value, type: 'decimal(12,2)'},"
        " at: {path: at, type: timestamp}, rank: {path: rank, type: int}, gone: gone}"
    )
    of_records = "record_set: {key: [record], order_by: [rank], deleted: \"gone = 'yes'\"}"
    return (
        "project: histories\ntimezone: UTC\nsources:\n"
        "  record_files: {files: 'records/*.jsonl'}\n  stream_files: {files: 'stream/*.jsonl'}\n"
        "  computed_files: {files: 'computed/*.jsonl'}\ndatasets:\n"
        f"  records: {{from: record_files, columns: {columns}, {of_records}}}\n"
        f"  stream: {{from: stream_files, columns: {columns}}}\n"
        f"  made: {{from: computed_files, columns: {columns}, {of_records}}}\n"
        "jobs:\n  - name: computed\n    input_datasets: [made]\n    output_dataset: computed\n"
        "    incremental: {mode: keyed, key: [record]}\n"
        "    sql: SELECT record, owner, value, at FROM made\n"
        "entities:\n"
        + "".join(
            f"  {name}:\n    id: {{owner: bigint}}\n    variables:\n{variables}{ratio}" for name in ENTITIES
        )
    )


class History(Play):
    """A random history, written as files before each run."""

    def __init__(self, seed: int, project: TestProject) -> None:
        super().__init__(seed)
        self.project, self.written, self.files, self.rank = project, 0, 0, 0
        self.computed: dict[int, Row] = {}

    def row(self, dataset: str, record: int) -> Row:
        made = super().row(dataset, record)
        return replace(made, record=self.chance.randint(1, 4)) if dataset == STREAM else made

    def write(self) -> None:
        """The facts since the last run."""
        self.files += 1
        for dataset in (RECORDS, STREAM):
            facts = [fact for fact in self.world.facts[self.written :] if fact.dataset == dataset]
            self._write(dataset, [self._line(fact, fact.order) for fact in facts])
        self.written = len(self.world.facts)
        changed = []
        for record in self.computed.keys() | self.world.computed.keys():
            before, now = self.computed.get(record), self.world.computed.get(record)
            if before != now:
                self.rank += 1
                row = now or before
                assert row is not None
                changed.append(self._line(replace(row, record=record, deleted=now is None), self.rank))
        self.computed = dict(self.world.computed)
        self._write(COMPUTED, changed)

    def _write(self, dataset: str, lines: list[str]) -> None:
        if lines:
            self.project.write(f"{dataset}/{self.files}.jsonl", "".join(f"{line}\n" for line in lines))

    def _line(self, row: Row, rank: int) -> str:
        return json.dumps(
            {
                "record": row.record,
                "owner": row.owner,
                "value": row.value,
                "at": None if row.at is None else day(row.at).isoformat(),
                "rank": rank,
                "gone": "yes" if row.deleted else "no",
            }
        )

    def expect(self) -> set[tuple[Any, ...]]:
        """Each row that an entity must have, with its state."""
        named = {
            namer: self.world.names(dataset)
            for namer, dataset in (
                ("computed(owner)", COMPUTED),
                ("records_facts(owner)", RECORDS),
                ("stream_facts(owner)", STREAM),
            )
        }
        rows = {dataset: list(self.world.rows(dataset)) for dataset in (RECORDS, STREAM, COMPUTED)}
        owner_of = {row.record: row.owner for row in rows[RECORDS]}
        rows[LOOKED_UP] = [replace(row, owner=owner_of.get(row.record)) for row in rows[STREAM]]
        return {self._expect(owner, rows, named) for owner in set().union(*named.values())}

    def _expect(self, owner: int, rows: dict[str, list[Row]], named: dict[str, set[int]]) -> tuple[Any, ...]:
        state: dict[str, Any] = {"named": sorted(n for n, owners in named.items() if owner in owners)}
        values = []
        for spec in SPECS:
            counted = list(self._count(rows[spec.dataset], owner, spec))
            value = spec.value(counted)
            values.append(spec.default if value is None and spec.default is not None else value)
            if spec.state is not None:
                state[f"{spec.name}.1"] = spec.state(counted)
        events = [row.value for row in rows[STREAM] if row.owner == owner and row.value is not None]
        state["ratio.1"], state["ratio.2"] = kept_total(events), kept_count(events)
        state["ratio.3"] = [str(max(events)) if events else None]
        text = json.dumps(state, sort_keys=True, separators=(",", ":"))
        return (owner, *values, thousands(events), text)

    def _count(self, rows: Iterable[Row], owner: int, spec: Spec) -> Iterable[int]:
        for row in rows:
            if row.owner == owner and weigh(row, spec.of_world, self.as_of):
                assert row.value is not None
                yield row.value


def day(number: int) -> datetime:
    return ORIGIN + timedelta(days=number)
