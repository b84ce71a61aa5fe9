"""What is added to and subtracted from, written in odd ways, is as a new project computes it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

YAML = """
    project: sums
    timezone: Asia/Kolkata
    sources:
      stream_events: {files: "s/*.jsonl"}
      record_events: {files: "r/*.jsonl"}
    datasets:
      stream:
        from: stream_events
        columns:
          id: id
          name: name
          n: {path: n, type: int}
          d: {path: d, type: double}
          amount: {path: amount, type: "decimal(28,2)"}
          at: {path: at, type: timestamp}
      records:
        from: record_events
        columns:
          key: key
          id: id
          n: {path: n, type: bigint}
          on: {path: on, type: date}
          op: op
          rank: {path: rank, type: int}
        record_set: {key: [key], order_by: [rank], deleted: "op = 'D'"}
    entities:
      thing:
        id: id
        variables:
          named: {from: stream, select: "max(struct(n, name)).name"}
          label: {from: stream, select: "concat('<', max(name), '>')"}
          bytes: {from: stream, select: "hex(max(encode(name, 'UTF-16BE')))"}
          pairs: {from: stream, select: "max(array(n, 1))[0]"}
          last: {from: stream, select: "datediff(max(at), min(at))"}
          ratio: {from: stream, select: "sum(n) / nullif(count(*), 0)"}
          both: {from: stream, select: "count(*) + count_if(n > 1)  -- of all"}
          highest: {from: stream, select: "max(d)", default: 0}
          lowest: {from: stream, select: "min(d)"}
          some: {from: stream, select: "sum(n) FILTER (WHERE name <> 'x' -- not x\\n )"}
          mean: {from: stream, select: avg(amount), window: {column: at, last: [1 day, 3 days]}, default: -1}
          plain: {from: stream, select: sum(amount)}
          or_seven: {from: stream, select: sum(amount), default: 7}
          recent: {from: stream, select: "count_if(at >= :as_of - INTERVAL 1 DAY OR name = 'x')"}
          pairs_known: {from: stream, select: "count(n, name)"}
          records: {from: records, select: count(*)}
          sum: {from: records, select: "sum(n + 1)", where: "n > -5"}
          mean_n: {from: records, select: avg(n), window: {column: "on", last: 2 days}}
          changed: {from: records, select: "sum(CASE WHEN `on` < :as_of THEN n ELSE -n END)"}
      age:
        id: id
        variables:
          days: {from: stream, select: "sum(datediff(:as_of, at))"}
          rows: {from: records, select: count(*)}
"""


def event(id_: str, name: str | None, n: int | None, at: str | None, **more: object) -> dict[str, object]:
    return {"id": id_, "name": name, "n": n, "at": at, **more}


def record(
    key: str, id_: str | None, n: int | None, on: str | None, rank: int, **more: object
) -> dict[str, object]:
    return {"key": key, "id": id_, "n": n, "on": on, "rank": rank, **more}


DAYS: tuple[tuple[str, list[dict[str, object]], list[dict[str, object]]], ...] = (
    (
        "2024-03-10T00:00:00+00:00",
        [
            event("a", "x", 1, "2024-03-09T00:00:00Z", d="NaN", amount="0.10"),
            event("a", "y", 3, "2024-03-09T23:59:59.999999Z", d=-0.0, amount="9" * 20 + ".99"),
            event("b", None, None, None),
            event("b", "é", 2, "2024-03-11T00:00:00Z", d=1.5, amount="-0.01"),
        ],
        [
            record("1", "a", 2**62, "2024-03-09", 1),
            record("2", "a", -(2**61), "2024-03-10", 1),
            record("3", "b", None, "2024-03-08", 1),
        ],
    ),
    (
        "2024-03-11T00:00:00+00:00",
        [
            event("a", "x", 3, "2024-03-10T12:00:00Z", d="-Infinity", amount="1.00"),
            event("c", "z", 1, "2024-03-08T00:00:00Z", d=0.0, amount="2.00"),
            event("c", "z", 1, "2024-03-08T00:00:00Z", d=0.0, amount="2.00"),
        ],
        [
            record("1", "b", 5, "2024-03-11", 2),
            record("2", "a", None, None, 2, op="D"),
            record("3", "b", -9, "2024-03-10", 2),
        ],
    ),
    ("2024-03-12T06:30:00+00:00", [], []),
    ("2024-03-09T12:00:00+00:00", [event("b", "x", 0, "2024-03-09T11:00:00Z")], []),
    # Somebody new, and a dataset that is not read: its columns and what is kept of them are carried over.
    ("2024-03-09T12:00:00+00:00", [event("d", "x", 0, "2024-03-09T11:00:00Z")], []),
)
COMPARED = (2, 4)
"""The days after which everything is computed anew: all values and what is kept of them are added up."""


def send(project: TestProject, day: int) -> None:
    _, events, records = DAYS[day]
    if events:
        project.lines(f"s/{day}.jsonl", *events)
    if records:
        project.lines(f"r/{day}.jsonl", *records)


def read(project: TestProject, entity: str) -> dict[Any, str]:
    """Rows as text, so that NaN equals itself. With what is kept beside them."""
    rows = project.query(f"SELECT *, _state FROM {entity}")
    return {row[0]: repr(row).replace("-0.0", "0.0") for row in rows}


def test_what_is_added_to_is_as_a_new_project_computes_it(tmp_path: Path) -> None:
    project = TestProject.create(tmp_path / "sums", YAML)
    strategies = []

    for day, (time, _, _) in enumerate(DAYS):
        send(project, day)
        outcome = project.run(at(time))
        strategies.append(str(result_of(outcome, "thing").strategy))
        if day not in COMPARED:
            continue
        anew = TestProject.create(tmp_path / f"anew{day}", YAML)
        for earlier in range(day + 1):
            send(anew, earlier)
        anew.run(at(time))
        for entity in ("thing", "age"):
            assert read(project, entity) == read(anew, entity), f"{entity} at {time}"

    project.assert_verified("thing", "age")
    assert strategies == ["full", *["accumulate"] * 4]
    rows = {
        row[0]: row[1:]
        for row in project.query("SELECT id, named, label, both, records, or_seven FROM thing")
    }
    assert rows["a"][:4] == ("y", "<y>", 5, 0)
    assert rows["b"] == ("é", "<é>", 4, 2, Decimal("-0.01"))
