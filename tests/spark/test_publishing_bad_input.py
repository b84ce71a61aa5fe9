"""Mistakes in what is published that only the first run can see: told, mended, and nothing is lost.

The columns of a Python job's output, and the types in Parquet files, are not known before. One project has
every mistake. One run meets them all, and the next runs do what was told. Whatever else there is goes on.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from tests.harness import TestProject, result_of

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]
YAML = """
project: bad
sources:
  rows: {files: "rows/*.parquet"}
  measures: {files: "measures/*.parquet"}
datasets:
  trades:
    from: rows
    record_set: {key: [id], order_by: [at]}
  ratios:
    from: measures
    record_set: {key: [ratio], order_by: [at]}
  copies: {key: [id]}
jobs:
  - name: copies
    input_datasets: [trades]
    output_dataset: copies
    incremental: {mode: keyed, key: [id], inputs: {trades: {by: [id]}}}
    python: copies.py:copy
publish: [ratios]
views:
  large:
    from: copies
    where: {quantity: {_gte: "5"}}
  unknown:
    from: copies
    where: {quantaty: {_gte: "5"}}
  failing:
    from: copies
    calculated: {amount: "quantaty * 2"}
  raising:
    from: copies
    calculated: {fine: "quantity || id", share: "1 / (cast(quantity as int) - 3)"}
triggers:
  alert:
    from: copies
    fire: {quantity: {_eq: "7"}}
  misspelt:
    from: copies
    fire: {quantity: {_eq: "7"}}
    clear: {quantaty: {_eq: "7"}}
  mistyped:
    from: copies
    fire: {quantity: {_eq: 7}}
  of_view:
    from: failing
    fire: {}
"""
MENDED = (
    ("where: {quantaty", "where: {quantity"),
    ("quantaty * 2", "quantity * 2"),
    ("clear: {quantaty", "clear: {quantity"),
    ("{_eq: 7}", '{_eq: "7"}'),
    ("from: measures\n", 'from: measures\n    columns: {ratio: {type: "decimal(9,3)"}}\n'),
)


def write(project: TestProject, path: str, columns: dict[str, list[Any]]) -> None:
    (project.folder / path).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), project.folder / path)


def told(outcome: RunOutcome) -> dict[str, tuple[str, str]]:
    """Of each task that did not end well: its status, and the slug of its error or why it waits."""
    ends = {result.node: (str(result.status), str(result.error or "")) for result in outcome.results}
    return {
        name: (status, error.rpartition("[")[2].rstrip("]"))
        for name, (status, error) in ends.items()
        if status not in ("done", "unchanged")
    }


def test_a_mistake_that_only_a_run_can_see_is_told_and_holds_up_nothing_else(make_project: Make) -> None:
    project = make_project(YAML)
    project.write("copies.py", "def copy(inputs, context):\n    return inputs['trades']\n")
    write(project, "rows/1.parquet", {"id": ["a", "b", "c"], "quantity": ["7", "3", "9"], "at": [1, 1, 1]})
    write(project, "measures/1.parquet", {"ratio": [0.5, 1.5], "at": [1, 1]})

    first = project.run(ok=False)

    assert told(first) == {
        "unknown": ("failed", "unknown-column"),
        "failing": ("failed", "sql-refused"),
        "raising": ("failed", "expression-raised"),
        "misspelt": ("failed", "unknown-column"),
        "mistyped": ("failed", "filter-type"),
        "ratios_changes": ("failed", "double-in-row-key"),
        "unknown_changes": ("blocked", "waits for `unknown`"),
        "failing_changes": ("blocked", "waits for `failing`"),
        "raising_changes": ("blocked", "waits for `raising`"),
        "of_view": ("blocked", "waits for `failing_changes`"),
    }
    assert "the column `share` of the view `raising` cannot be computed for some row" in str(
        result_of(first, "raising").error
    )
    assert project.rows("alert", "event_type", "key", "quiet") == {("MATCH", "a", False)}
    assert project.rows("large", "id") == {("a",), ("c",)}

    text = YAML
    for wrong, right in MENDED:
        assert text.count(wrong) == 1, wrong
        text = text.replace(wrong, right)
    project.declare(text)
    write(project, "rows/2.parquet", {"id": ["b"], "quantity": ["7"], "at": [2]})
    project.run(ok=False)
    second = project.run(RunRequest(backfill="ratios"), ok=False)

    assert told(second) == {}
    for name in ("alert", "misspelt", "mistyped"):
        assert project.rows(name, "event_type", "key", "quiet") == {
            ("MATCH", "a", False),
            ("MATCH", "b", False),
        }, name
    for name in ("unknown", "raising"):
        assert project.rows(name, "id") == {("a",), ("b",), ("c",)}, name
    assert project.rows("of_view", "key", "quiet") == {("a", False), ("b", False), ("c", False)}
    log = project.query("select distinct operation, key from ratios_changes")
    assert log == [("RESET", None)], "nothing could name the rows while their key was a double"
    write(project, "measures/2.parquet", {"ratio": [2.5], "at": [2]})
    assert told(project.run(ok=False)) == {}
    assert ("INSERT", "2.500") in project.query("select operation, key from ratios_changes")
    project.assert_verified()
