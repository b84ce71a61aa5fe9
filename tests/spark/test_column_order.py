"""A column that is declared in the middle is last in its table, but users' code sees the declared order."""

from collections.abc import Callable

import pytest

from strandline.app.planning import RunRequest
from tests.harness import TestProject

pytestmark = pytest.mark.spark

YAML = """
project: order
sources: {{a: {{files: "a/*.jsonl"}}, b: {{files: "b/*.jsonl"}}}}
datasets:
  y2023: {{from: a, columns: &columns {{{columns}}}, record_set: &ranked {{key: [id], order_by: [ts]}}}}
  y2024: {{from: b, columns: *columns, record_set: *ranked}}
jobs:
  - name: passed_on
    input_datasets: [y2023]
    output_dataset: passed_on
    incremental: {{mode: keyed, key: [k]}}
    sql: select * from y2023
{jobs}
"""
JOBS = """
  - name: both
    input_datasets: [y2023, y2024]
    output_dataset: both
    incremental: {mode: keyed, key: [k]}
    sql: >-
      select k, region, count(*) as n from (select * from y2023 union all select * from y2024)
      group by k, region
  - name: named
    input_datasets: [passed_on]
    output_dataset: named
    incremental: {mode: keyed, key: [k]}
    sql: select x.k, x.r, x.i from passed_on as x(i, r, k, t)
  - name: seen
    input_datasets: [passed_on, y2023]
    output_dataset: seen
    python: seen.py:seen
"""
CODE = """
def seen(inputs, context):
    rows = inputs["y2023"].sparkSession.createDataFrame(
        [(name, ",".join(rows.columns)) for name, rows in inputs.items()], "name string, columns string"
    )
    return rows
"""


def test_users_code_sees_columns_in_declared_order(make_project: Callable[[str], TestProject]) -> None:
    p = make_project(YAML.format(columns="id: id, k: k, ts: ts", jobs=""))
    p.write("seen.py", CODE)
    p.lines("a/1.jsonl", {"id": "1", "k": "a", "ts": "1", "region": "EU"})
    p.run()

    p.declare(YAML.format(columns="id: id, region: region, k: k, ts: ts", jobs=JOBS))
    p.lines("b/1.jsonl", {"id": "2", "k": "a", "ts": "1", "region": "US"})
    early = p.run()
    _, _, *names, option = early.held.command.split()
    p.run(RunRequest(backfill=" ".join(names), only_stale=option == "--stale"))
    p.run(RunRequest(backfill="passed_on"))
    p.lines("a/2.jsonl", {"id": "3", "k": "c", "ts": "1", "region": "EU"})
    p.run()

    assert {h.node for h in early.plan.held} >= {"both", "passed_on"}  # the table lacks the column so far
    assert p.rows("both", "k", "region", "n") == {("a", "EU", 1), ("a", "US", 1), ("c", "EU", 1)}
    assert p.rows("named", "k", "r", "i") == {("a", "EU", "1"), ("c", "EU", "3")}
    assert p.rows("seen") == {("y2023", "id,region,k,ts"), ("passed_on", "id,region,k,ts")}
    p.assert_verified("both", "named")
