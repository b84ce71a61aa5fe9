"""Facts and snapshots through runs: late, tied, duplicate, deleted and broken facts."""

from collections.abc import Callable

import pytest

from tests.harness import PATHS, TestProject, result_of

pytestmark = pytest.mark.spark

YAML = """
    project: register
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      item:
        from: events
        columns:
          id: id
          name: body.name
          price: {path: body.price, type: "decimal(10,2)"}
          at: {path: at, type: timestamp_ms}
          version: {path: version, type: bigint, default: 0}
          op: op
        record_set: {key: [id], order_by: [at, version], deleted: "op = 'D'"}
    jobs:
      - name: names
        input_datasets: [item]
        output_dataset: names
        incremental: {mode: keyed, key: [name]}
        sql: select name, count(*) as items, sum(price) as total from item group by name
"""


def message(id: str | None, at: int, name: str, price: object = 1, **more: object) -> dict[str, object]:
    return {"id": id, "at": at, "body": {"name": name, "price": price}, **more}


@pytest.mark.parametrize("path", PATHS)
def test_days_of_late_tied_deleted_and_broken_facts_equal_a_full_recompute(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
    project = make_project(YAML)
    project.lines(
        "data/1.jsonl",
        message("a", 10, "x", "2.50"),
        message("b", 10, "x", 3),
        message("c", 5, "y", 4.25),
        "{broken",
        message(None, 1, "z"),
    )

    first = project.run()

    assert project.rows("item", "id", "name") == {("a", "x"), ("b", "x"), ("c", "y")}
    assert result_of(first, "item_facts").counts == {
        "offered": 5,
        "accepted": 3,
        "duplicates": 0,
        "quarantined": 2,
        "passed_over": 0,
        "derived": 0,
    }
    assert {slug for (slug,) in project.query("select slug from item_quarantine")} == {"not-json", "null-key"}
    assert project.run().results == (), "running twice changes nothing"

    project.lines(
        "data/2.jsonl",
        message("a", 9, "late"),
        message("b", 11, "y", 7),
        message("c", 6, "y", op="D"),
        message("d", 1, "x", 1),
    )
    second = project.run()

    assert project.rows("item", "id", "name") == {("a", "x"), ("b", "y"), ("d", "x")}
    assert {(n, i, str(t)) for n, i, t in project.rows("names")} == {("x", 2, "3.50"), ("y", 1, "7.00")}
    assert result_of(second, "item").strategy == "recompute"
    project.assert_verified()

    project.lines("data/3.jsonl", message("c", 5, "older than its deletion"), message("b", 12, "z", 7))
    project.run()

    assert ("c", "older than its deletion") not in project.rows("item", "id", "name")
    assert {name for name, _, _ in project.rows("names")} == {"x", "z"}
    project.assert_verified()
