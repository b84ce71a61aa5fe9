"""Adding and subtracting at the edges: large numbers, decimals, NULL, doubles, a state that is missing."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from strandline.compute.entity import parts
from strandline.compute.entity.ways import NOT_ADDED
from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark
YAML = """
    project: adding
    timezone: UTC
    sources: {rows: {files: "r/*.jsonl"}, events: {files: "e/*.jsonl"}}
    datasets:
      records:
        from: rows
        columns:
          id: id
          owner: owner
          large: {path: large, type: bigint}
          exact: {path: exact, type: "decimal(28,10)"}
          widest: {path: widest, type: "decimal(38,0)"}
          inexact: {path: inexact, type: double}
          rank: {path: rank, type: int}
        record_set: {key: [id], order_by: [rank]}
      readings:
        from: events
        columns: {owner: owner, inexact: {path: inexact, type: double}, at: {path: at, type: timestamp}}
    entities:
      thing:
        id: owner
        variables:
          large: {from: records, select: "sum(large)"}
          middle: {from: records, select: "avg(large)"}
          exact: {from: records, select: "sum(exact)"}
          fine: {from: records, select: "avg(exact)"}
          widest: {from: records, select: "sum(widest)"}
          inexact: {from: records, select: "sum(inexact)"}
          more: {from: records, select: "count(*) + count_if(large < 0)", default: 5}
          most: {from: readings, select: "max(inexact)"}
          newest: {from: readings, select: "datediff(max(at), min(at))"}
"""
LARGEST = 2**63 - 1
COLUMNS = "owner, large, middle, exact, fine, widest, inexact, more, most"


def record(name: str, owner: str, rank: int, **values: object) -> dict[str, object]:
    return {"id": name, "owner": owner, "rank": rank, **values}


def read(project: TestProject) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in project.query(f"SELECT {COLUMNS} FROM thing")}


def run(project: TestProject, strategy: str) -> tuple[str, ...]:
    task = result_of(project.run(at("2024-03-10T00:00:00+00:00")), "thing")
    assert task.strategy == strategy
    return task.notes


def test_large_numbers_null_and_minus_zero_are_added_and_subtracted_exactly(tmp_path: Path) -> None:
    project = TestProject.create(tmp_path / "adding", YAML)
    ninth = "0.1111111111"
    project.lines(
        "r/1.jsonl",
        record("a", "x", 1, large=LARGEST, exact=ninth, widest="9" * 38, inexact=0.1),
        record("b", "y", 1, large=-LARGEST, exact="-0.0000000001", inexact=-0.0),
        record("c", "z", 1),
    )
    project.lines("e/1.jsonl", {"owner": "x", "inexact": -0.0, "at": "2024-01-01T00:00:00.000001Z"})
    run(project, "full")

    # Each old row leaves while its owner's new one comes: their sum would not fit.
    project.lines(
        "r/2.jsonl",
        record("a", "x", 2, large=LARGEST, exact=f"{'9' * 18}.{'9' * 10}", widest="9" * 37, inexact=0.2),
        record("b", "z", 2, large=-LARGEST, exact="-0.0000000001"),
        record("c", "z", 2, exact="0.0000000002"),
        record("d", "x", 2, large=-1, exact=ninth),
    )
    project.lines(
        "e/2.jsonl",
        {"owner": "x", "inexact": "NaN", "at": "2024-01-02T00:00:00.000003Z"},
        {"owner": "y", "inexact": 1.5},
    )
    assert run(project, "accumulate") == ()

    exact = Decimal("1000000000000000000.1111111110")
    found = read(project)
    assert found["y"] == (None, None, None, None, None, None, 0, 1.5)
    tenth, half = Decimal("0.0000000001"), Decimal("0.00000000005000")
    assert found["z"] == (-LARGEST, float(-LARGEST), tenth, half, None, None, 3, None)
    x = found["x"]
    assert x[:4] == (LARGEST - 1, (LARGEST - 1) / 2, exact, Decimal("500000000000000000.05555555550000"))
    assert (x[4], x[5], x[6]) == (Decimal("9" * 37), 0.2, 3)
    project.assert_verified("thing")


def test_a_row_whose_state_is_missing_is_computed_again_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = TestProject.create(tmp_path / "adding", YAML)
    project.lines("r/1.jsonl", record("a", "x", 1, large=1), record("b", "y", 1, large=2))
    project.lines("e/1.jsonl", {"owner": "x", "inexact": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr(parts, "find_obstacle", lambda *_: "nothing was added to")
        run(project, "full")
    project.lines("r/2.jsonl", record("c", "x", 1, large=3))

    notes = run(project, "accumulate")

    assert notes == (NOT_ADDED,)
    assert {owner: row[0] for owner, row in read(project).items()} == {"x": 4, "y": 2}
    states = {owner: json.loads(text) for owner, text in project.query("SELECT owner, _state FROM thing")}
    assert states["x"]["large.1"] == ["2"]
    assert "large.1" not in states["y"]
    project.lines("r/3.jsonl", record("d", "x", 1, large=5))
    assert run(project, "accumulate") == ()
    assert read(project)["x"][0] == 9
