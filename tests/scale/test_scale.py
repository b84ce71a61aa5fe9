"""Sizes that small tests do not reach, with bounds on time and memory. `make test-scale` runs them.

The bounds are wide. They find work that grows quadratically, or with everything ever received.
"""

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from strandline.app.status import read_status
from strandline.app.workspace import open_workspace
from tests.harness import TestProject, at

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not os.environ.get("STRANDLINE_SCALE"),
        reason="set STRANDLINE_SCALE=1, or `make test-scale`: minutes each",
    ),
]
Make = Callable[[str], TestProject]
Say = Callable[[str], None]


@contextmanager
def bounded(say: Say, what: str, *, seconds: float, mebibytes: int) -> Iterator[None]:
    """Fail if the work took longer, or if this process grew by more.

    Spark's memory is its heap, which has a fixed size.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    yield
    took = time.monotonic() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    say(f"{what}: {took:.1f} s (at most {seconds:g}), {grown} MiB more (at most {mebibytes})")
    assert took <= seconds, f"{what} took {took:.1f} s"
    assert grown <= mebibytes, f"{what} needed {grown} MiB"


LARGE_SCOPE = """
    project: large_scope
    sources: {e: {files: "d/*.parquet"}}
    datasets:
      ev: {from: e, event_stream: {identity: [id]}}
    jobs:
      - name: f
        input_datasets: [ev]
        output_dataset: f
        incremental: {mode: full}
        sql: select id, v from ev
      - name: pt
        input_datasets: [ev]
        output_dataset: pt
        incremental: {mode: partition}
        partition: {column: id, size: 10000000}
        sql: select id, v from ev
      - name: k
        input_datasets: [ev]
        output_dataset: k
        incremental: {mode: keyed, key: [g]}
        sql: select g, id from ev
"""


def test_one_scope_of_two_million_rows(make_project: Make, say: Say) -> None:
    rows = 2_000_000
    project = make_project(LARGE_SCOPE)
    (project.folder / "d").mkdir()
    _write(project.folder / "d/1.parquet", range(rows))
    with bounded(say, "first run of 2,000,000 rows in one scope", seconds=600, mebibytes=2000):
        project.run()
    _write(project.folder / "d/2.parquet", range(rows, rows + 1))

    with bounded(say, "one row more", seconds=600, mebibytes=2000):
        project.run()

    for job in ("f", "pt", "k"):
        assert project.query(f"select count(*), count(distinct id) from {job}") == [(rows + 1, rows + 1)], job
    with bounded(say, "verify", seconds=600, mebibytes=1000):
        project.assert_verified("f", "pt", "k")


def _write(path: Path, ids: range) -> None:
    count = len(ids)
    table = {"id": pa.array(ids, pa.int64()), "g": ["x"] * count, "v": pa.array([1] * count, pa.int64())}
    pq.write_table(pa.table(table), path)


def test_one_key_with_a_million_facts(make_project: Make, say: Say) -> None:
    facts = 1_000_000
    project = make_project("""
        project: one_key
        sources: {e: {files: "d/*.parquet"}}
        datasets:
          rec: {from: e, record_set: {key: [g], order_by: [id]}}
        jobs:
          - name: j
            input_datasets: [rec]
            output_dataset: j
            incremental: {mode: keyed, key: [g]}
            sql: select g, id from rec
    """)
    (project.folder / "d").mkdir()
    _write(project.folder / "d/1.parquet", range(facts))
    with bounded(say, "first run of 1,000,000 facts about one key", seconds=400, mebibytes=1500):
        project.run()
    _write(project.folder / "d/2.parquet", range(facts - 10, facts + 1))

    with bounded(say, "ten late facts and a new one", seconds=120, mebibytes=500):
        project.run()

    assert project.query("select id from j") == [(facts,)]
    project.assert_verified("rec", "j")


def test_one_key_of_a_timeline_with_a_million_facts_in_a_day(make_project: Make, say: Say) -> None:
    facts, others = 1_000_000, 1000
    project = make_project("""
        project: one_day
        sources: {e: {files: "d/*.parquet"}}
        datasets:
          fills: {from: e, event_stream: {identity: [id]}}
        timelines:
          held:
            key: [g]
            facts: fills
            date: on
            order_by: [id]
            fold: folds.py:add
            fields: {n: bigint, last: bigint}
            output_dataset: held_history
            valuation: {output_dataset: held_daily, calendar: weekdays}
    """)
    project.write(
        "folds.py",
        "def add(state, facts):\n"
        "    assert all(a['id'] < b['id'] for a, b in zip(facts, facts[1:])), 'in order'\n"
        "    return {'n': (state or {'n': 0})['n'] + len(facts), 'last': facts[-1]['id']}\n",
    )
    (project.folder / "d").mkdir()
    _write_day(project.folder / "d/1.parquet", range(facts), ["x"], date(2024, 1, 2))
    names = [f"k{n}" for n in range(others)]
    _write_day(project.folder / "d/2.parquet", range(facts, facts + others), names, date(2024, 1, 2))
    with bounded(say, "first run of 1,000,000 facts of one key and date", seconds=400, mebibytes=1500):
        project.run(at("2024-01-03T12:00:00Z"))
    _write_day(project.folder / "d/3.parquet", range(-1, 0), ["x"], date(2024, 1, 1))

    with bounded(say, "a fact back-dated before them", seconds=300, mebibytes=1000):
        project.run(at("2024-01-03T12:00:00Z"))

    assert project.query("select date, n, last, epoch from held_history where g = 'x' order by date") == [
        (date(2024, 1, 1), 1, -1, 1),
        (date(2024, 1, 2), facts + 1, facts - 1, 1),
    ]
    assert project.query("select count(*), min(n), max(n) from held_history where g <> 'x'") == [
        (others, 1, 1)
    ]
    assert project.query("select count(*) from held_daily") == [(3 + 2 * others,)]
    project.assert_verified("held")


def _write_day(path: Path, ids: range, keys: list[str], on: date) -> None:
    """Facts of one date, in shuffled order. The keys take turns."""
    order = sorted(ids, key=lambda n: n * 2_654_435_761 % 2**32)
    table = {
        "id": pa.array(order, pa.int64()),
        "g": [keys[n % len(keys)] for n in order],
        "on": pa.array([on] * len(ids), pa.date32()),
    }
    pq.write_table(pa.table(table), path)


def test_five_thousand_files(make_project: Make, say: Say) -> None:
    files = 5000
    project = make_project("""
        project: many_files
        sources: {e: {files: "d/*.jsonl"}}
        datasets:
          rec: {from: e, columns: {id: id, v: {path: v, type: int}}, record_set: {key: [id], order_by: [v]}}
    """)
    for n in range(files):
        project.lines(f"d/{n:05}.jsonl", {"id": f"i{n % 1000}", "v": n}, {"id": f"j{n}", "v": n})
    with bounded(say, "first run of 5,000 files", seconds=400, mebibytes=1500):
        project.run()
    project.lines("d/late.jsonl", {"id": "i7", "v": 10**6})

    with bounded(say, "one file more", seconds=90, mebibytes=500):
        project.run()
    with bounded(say, "a plan over them", seconds=20, mebibytes=500):
        assert project.plan().tasks == ()

    assert project.query("select count(*) from rec") == [(files + 1000,)]
    assert project.query("select v from rec where id = 'i7'") == [(10**6,)]


def test_five_hundred_nodes(make_project: Make, say: Say) -> None:
    jobs = "".join(
        f"\n  - {{name: j{n}, input_datasets: [rec], output_dataset: j{n}, "
        f"incremental: {{mode: keyed, key: [id]}}, "
        f'sql: "select id, v + {n} as v from rec"}}'
        for n in range(496)
    )
    project = make_project(
        f"""project: many_nodes
sources: {{e: {{files: "d/*.jsonl"}}}}
datasets:
  rec: {{from: e, columns: {{id: id, v: {{path: v, type: int}}}}, record_set: {{key: [id], order_by: [v]}}}}
jobs:{jobs}
"""
    )
    project.lines("d/1.jsonl", *({"id": f"i{n}", "v": n} for n in range(50)))
    with bounded(say, "plan of 500 new nodes", seconds=30, mebibytes=500):
        assert len(project.plan().tasks) >= 499
    with bounded(say, "first run of 500 nodes", seconds=1500, mebibytes=1500):
        project.run()
    project.lines("d/2.jsonl", {"id": "i7", "v": 10**6})
    with bounded(say, "plan of one change through them", seconds=30, mebibytes=500):
        assert len(project.plan().tasks) >= 498
    with bounded(say, "one change through 500 nodes", seconds=1500, mebibytes=1500):
        project.run()
    with (
        bounded(say, "status of 500 nodes", seconds=60, mebibytes=500),
        open_workspace(project.folder) as workspace,
    ):
        read_status(workspace, None)

    assert project.query("select v from j495 where id = 'i7'") == [(10**6 + 495,)]


def test_ten_thousand_commits_in_a_log(make_project: Make, say: Say) -> None:
    project = make_project("""
        project: long_log
        sources: {e: {files: "d/*.jsonl"}}
        datasets:
          rec: {from: e, columns: {id: id, v: {path: v, type: int}}, record_set: {key: [id], order_by: [v]}}
        jobs:
          - name: j
            input_datasets: [rec]
            output_dataset: j
            incremental: {mode: keyed, key: [id]}
            sql: select id, v from rec
    """)
    project.lines("d/1.jsonl", {"id": "a", "v": 1}, {"id": "b", "v": 1})
    project.run()
    _lengthen(project.folder / ".strandline/lake/rec", 10_000)
    project.lines("d/2.jsonl", {"id": "a", "v": 2})

    with bounded(say, "plan over a log of 10,000 commits", seconds=30, mebibytes=500):
        project.plan()
    with bounded(say, "run over it", seconds=300, mebibytes=1000):
        project.run()
    with bounded(say, "plan after it", seconds=30, mebibytes=500):
        assert project.plan().tasks == ()

    assert project.rows("j", "id", "v") == {("a", 2), ("b", 1)}
    project.assert_verified()


def _lengthen(table: Path, commits: int) -> None:
    """Add commits that do not change rows, like fences, with a checkpoint every fifty commits.

    The engine's own tables have checkpoints as often.
    """
    log = table / "_delta_log"
    last = max(int(path.stem) for path in log.glob("*.json"))
    entry = [json.loads(line) for line in (log / f"{last:020}.json").read_text().splitlines()]
    info = next(action["commitInfo"] for action in entry if "commitInfo" in action)
    transaction = next(action["txn"] for action in entry if "txn" in action)
    metadata = json.loads(info["userMetadata"])
    for n in range(1, commits + 1):
        fence = {
            **metadata,
            "operation": "fence",
            "token": transaction["version"] + n,
            "inputs": {},
            "partitions": [],
        }
        at = info["inCommitTimestamp"] + n
        lines = [
            {
                "commitInfo": {
                    **info,
                    "inCommitTimestamp": at,
                    "timestamp": at,
                    "userMetadata": json.dumps(fence),
                }
            },
            {"txn": {**transaction, "version": transaction["version"] + n}},
        ]
        (log / f"{last + n:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    DeltaTable(str(table)).create_checkpoint()
