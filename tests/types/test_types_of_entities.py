"""Every type as the id of an entity, in its aggregates and in its windows, against plain Python.

A job's output has a column of every type. Its rows then change their values, vanish and appear.
"""

import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from strandline.app.planning import RunRequest
from tests.harness import PATHS, TestProject
from tests.types.catalogue import KINDS as CATALOGUE
from tests.types.catalogue import Kind
from tests.types.changing_rows import Rows, change_rows, declare_typed

pytestmark = pytest.mark.spark

EVERYTHING = os.environ.get("STRANDLINE_TYPES") == "all"
TAKEN = PATHS if EVERYTHING else {"looked_up": PATHS["looked_up"]}
KINDS = (
    CATALOGUE
    if EVERYTHING
    else tuple(
        k for k in CATALOGUE if k.name in ("digits", "binary", "date", "timestamp", "zoneless", "pair")
    )
)
ROUNDS = 3 if EVERYTHING else 2
REFUSED = {"map": "key-type", "maps": "key-type"}
"""Types that cannot name an entity, with the slug."""
UNORDERED = ("map", "maps")
WINDOWED = ("date", "timestamp", "zoneless")
SUMMED = ("tinyint", "smallint", "int", "bigint", "cents")
"""Numbers of which no sum leaves its type."""
DAYS = 50_000
AS_OF = datetime(2024, 3, 10, 12, tzinfo=UTC)
ZONE = ZoneInfo("America/St_Johns")


def value_of(kind: Kind) -> str:
    values = ", ".join(sql for sql, _ in kind.values)
    return f"element_at(array({values}), cast(pmod(pick, {len(kind.values)}) + 1 as int)) as v_{kind.name}"


def variables_of(kind: Kind) -> Iterable[tuple[str, str]]:
    """By name: each aggregate that a type allows."""
    v = f"v_{kind.name}"
    yield f"newest_{kind.name}", f'select: "max_by({v}, seq)"'
    if kind.name not in UNORDERED:
        yield f"distinct_{kind.name}", f'select: "count(distinct {v})"'
        yield f"least_{kind.name}", f'select: "min({v})"'
    if kind.name in SUMMED:
        yield f"sum_{kind.name}", f'select: "sum({v})"'
    if kind.name in WINDOWED:
        yield f"recent_{kind.name}", f"select: count(*), window: {{column: {v}, last: {DAYS} days}}"


def declare() -> str:
    named = "".join(
        f"""
  by_{kind.name}:
    id: v_{kind.name}
    variables: {{rows: {{from: typed, select: count(*)}}, total: {{from: typed, select: sum(seq)}}}}"""
        for kind in KINDS
    )
    variables = "".join(
        f"\n      {name}: {{from: typed, {text}}}" for kind in KINDS for name, text in variables_of(kind)
    )
    entities = f"""
entities:{named}
  of_group:
    id: g
    variables:{variables}
"""
    return declare_typed(map(value_of, KINDS)) + entities


def identity(kind: Kind, pick: int) -> str:
    return kind.values[pick % len(kind.values)][1]


def is_null(kind: Kind, pick: int) -> bool:
    return identity(kind, pick) == "NULL"


def expect_ids(kind: Kind, rows: Rows) -> list[tuple[int, int]]:
    """The number and the sum of the rows of each value that is not NULL."""
    found: dict[str, list[int]] = defaultdict(list)
    for _, pick, seq in rows.values():
        if not is_null(kind, pick):
            found[identity(kind, pick)].append(seq)
    return sorted((len(of), sum(of)) for of in found.values())


def check(project: TestProject, rows: Rows, refused: Iterable[str]) -> None:
    for kind in KINDS:
        if f"by_{kind.name}" not in refused:
            counted = [(n, total) for n, total in project.query(f"select rows, total from by_{kind.name}")]
            assert sorted(row for row in counted if row[0]) == expect_ids(kind, rows), kind.name
            assert all(total is None for n, total in counted if not n)
    names = [name for kind in KINDS for name, _ in variables_of(kind)]
    groups = {
        g: dict(zip(names, of, strict=True))
        for g, *of in project.query(f"select g, {', '.join(names)} from of_group")
    }
    typed = {
        row[0]: row[1:]
        for row in project.query(f"select id, {', '.join(f'v_{k.name}' for k in KINDS)} from typed")
    }
    assert groups.keys() == {g for g, _, _ in rows.values()}
    for g, values in groups.items():
        own = {id_: row for id_, row in rows.items() if row[0] == g}
        newest = max(own, key=lambda id_: own[id_][2])
        for place, kind in enumerate(KINDS):
            found = [typed[id_][place] for id_ in own]
            expected = expect_values(kind, own, found, typed[newest][place])
            seen = {name: values[name] for name in expected}
            assert repr(seen) == repr(expected), (g, kind.name)


def expect_values(kind: Kind, own: Rows, found: list[Any], newest: Any) -> dict[str, Any]:
    expected = {f"newest_{kind.name}": newest}
    present = {identity(kind, pick) for _, pick, _ in own.values()} - {"NULL"}
    if kind.name not in UNORDERED:
        expected[f"distinct_{kind.name}"] = len(present)
    if kind.name in SUMMED:
        numbers = [value for value in found if value is not None]
        expected[f"sum_{kind.name}"] = sum(numbers) if numbers else None
    if kind.name in WINDOWED:
        times = [instant(value) for value in found if value is not None]
        expected[f"recent_{kind.name}"] = sum(
            AS_OF - timedelta(days=DAYS) <= at < AS_OF for at in times if at
        )
        expected[f"least_{kind.name}"] = min((v for v in found if v is not None), default=None)
    return expected


def instant(value: date | datetime) -> datetime:
    """A date is its midnight in the time zone. Those at the ends of the calendar lie in no window."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if value.year in (1, 9999):
        return datetime.combine(value, time(), UTC)
    return datetime.combine(value, time(), ZONE).astimezone(UTC)


@pytest.mark.parametrize("path", TAKEN)
def test_every_type_as_id_aggregate_and_window_of_an_entity(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    project = make_project(declare())
    chance, rows = random.Random(f"entities {path}"), Rows()
    monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
    for turn in range(ROUNDS):
        project.lines(f"data/{turn}.jsonl", *change_rows(rows, chance, turn))

        outcome = project.run(RunRequest(as_of=AS_OF), ok=False)

        failed = {r.node: r.error for r in outcome.results if str(r.status) not in ("done", "unchanged")}
        assert failed.keys() == {f"by_{kind.name}" for kind in KINDS if kind.name in REFUSED}, failed
        assert all(f"[{REFUSED[node.removeprefix('by_')]}]" in error for node, error in failed.items()), (
            failed
        )
        check(project, rows, failed)

    project.assert_verified("of_group", *(f"by_{k.name}" for k in KINDS if k.name not in REFUSED))
