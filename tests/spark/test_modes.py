"""Modes `cursor` and `partition`, appending, invalidations and partial backfills, in runs.

Laws L2, L4, L5 and L13.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from strandline.app.invalidate import Invalidated, invalidate
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.app.workspace import open_workspace
from strandline.catalog import read_invalidations
from strandline.model.catalog_records import NodeRecord
from strandline.model.errors import CallError
from strandline.model.plan import Cause, Status, describe_covered
from tests.harness import PATHS, TestProject, result_of
from tests.spark.test_jobs import tiny_hash

pytestmark = pytest.mark.spark

Make = Callable[..., TestProject]


@pytest.fixture(autouse=True)
def _every_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of a test uses another of the paths that depend on sizes.

    Each test begins with another path.
    """
    run, paths = TestProject.run, list(PATHS.values())
    turns = count(sum(request.node.name.encode()))

    def run_on_the_next(project: TestProject, *arguments: Any, **options: Any) -> RunOutcome:
        with pytest.MonkeyPatch.context() as patch:
            if "STRANDLINE_THRESHOLDS" not in os.environ:
                patch.setenv("STRANDLINE_THRESHOLDS", paths[next(turns) % len(paths)])
            return run(project, *arguments, **options)

    monkeypatch.setattr(TestProject, "run", run_on_the_next)


SOURCES = """
    project: blocks
    timezone: Asia/Kolkata
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      tx:
        from: events
        columns:
          id: id
          block: {path: block, type: bigint}
          hash: hash
          amount: {path: amount, type: int}
          at: {path: at, type: timestamp}
          v: {path: v, type: int, default: 1}
          op: op
        record_set: {key: [id], order_by: [v], deleted: "op = 'D'"}
    jobs:
"""
RULES = """\
      rule:
        from: rule_events
        columns: {name: name, least: {path: least, type: int}, v: {path: v, type: int, default: 1}}
        record_set: {key: [name], order_by: [v]}
    jobs:
"""
ALERTS = """
      - name: evaluate
        incremental: {mode: cursor, cursor_column: block, unique_key: [name, hash, id]}
        update_strategy: append
        input_datasets: [tx]
        lookup_datasets: [rule]
        output_dataset: alerts
        sql: |
          select r.name, t.hash, t.id, t.block, t.amount
          from tx t join rule r on t.amount >= r.least and r.least > 0
          union all
          select r.name, t.hash, cast(null as string) as id, t.block, max(t.amount) as amount
          from tx t join rule r on r.least = 0
          group by r.name, t.hash, t.block
"""
SUMS = """
      - name: sums
        incremental: {mode: cursor, cursor_column: block}
        input_datasets: [tx]
        output_dataset: sums
        sql: select block, sum(amount) as total from tx group by block
"""
COLD = """
      - name: compact
        incremental: {mode: partition}
        partition: {column: block, size: 10, final_after: 5}
        input_datasets: [tx]
        output_dataset: cold
        sql: select id, block, amount from tx
"""
DAILY = """
      - name: daily
        incremental: {mode: partition}
        partition: {column: at, unit: day}
        input_datasets: [tx]
        output_dataset: daily
        config: {factor: 1}
        sql: select local_date(at) as day, sum(amount) * :factor as total from tx group by local_date(at)
"""


def declare(*jobs: str) -> str:
    """The project with these jobs, and with rules only if a job looks them up: each node costs time."""
    text = SOURCES + "".join(jobs)
    if "lookup_datasets: [rule]" not in text:
        return text
    files = '      rule_events: {files: "rules/*.jsonl"}'
    return text.replace("    datasets:\n", f"{files}\n    datasets:\n").replace("    jobs:\n", RULES)


def tx(
    id: str, block: int | None, amount: int, hash: str = "", at: str = "2024-01-01T00:00:00Z", **more: object
) -> dict[str, object]:
    return {"id": id, "block": block, "amount": amount, "hash": hash or f"h{block}", "at": at, **more}


def record_of(project: TestProject, node: str) -> NodeRecord:
    with open_workspace(project.folder) as workspace:
        return workspace.observe().view.nodes[node]


def say(project: TestProject, dataset: str, where: str = "", **more: Any) -> Invalidated:
    with open_workspace(project.folder) as workspace:
        return invalidate(workspace, dataset, where=where, reason="correction", **more)


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def build(*jobs: str) -> TestProject:
        project = TestProject.create(tmp_path_factory.mktemp("modes"), declare(*jobs))
        project.lines("rules/1.jsonl", {"name": "large", "least": 100}, {"name": "any", "least": 0})
        return project

    return build


def test_an_append_fires_once_for_each_key_and_keeps_what_a_correction_takes_away(make: Make) -> None:
    """The seed's matrix: reprocessed, moved to another block, dropped.

    L5: a NULL in the unique key does not make rows distinct.
    """
    project = make(ALERTS)
    project.lines("data/1.jsonl", tx("a", 1, 150), tx("b", 1, 200), tx("c", 2, 5))
    project.run()
    first = {("large", "h1", "a"), ("large", "h1", "b"), ("any", "h1", None), ("any", "h2", None)}
    assert project.rows("alerts", "name", "hash", "id") == first

    project.lines("data/2.jsonl", tx("d", 1, 1))  # block 1 again: nothing new in it
    assert result_of(project.run(), "alerts").status is Status.UNCHANGED
    # `a` is dropped, `b` moves to another block.
    project.lines("data/3.jsonl", tx("a", 1, 150, v=2, op="D"), tx("b", 3, 200, hash="h3", v=2))
    done = result_of(project.run(), "alerts")

    assert project.rows("alerts", "name", "hash", "id") == first | {("large", "h3", "b"), ("any", "h3", None)}
    assert done.rows_written == 2
    verified = project.verify("alerts").datasets[0]
    assert (verified.result, verified.kept_rows, verified.compared_rows) == ("equal", 2, 6)


def test_a_key_that_moves_to_another_value_of_the_cursor_does_not_fire_again(make: Make) -> None:
    """The unique key is checked against everything published, not only in the values being computed."""
    project = make(ALERTS.replace("[name, hash, id]", "[name, id]").split("          union all")[0])
    project.lines("data/1.jsonl", tx("a", 1, 150))
    project.run()
    project.lines("data/2.jsonl", tx("a", 7, 170, v=2))
    project.run()
    assert project.rows("alerts", "name", "id", "block") == {("large", "a", 1)}
    assert project.verify("alerts").datasets[0].result == "equal"


def test_a_new_rule_fires_for_new_blocks_only_until_a_backfill(make: Make) -> None:
    project = make(ALERTS)
    project.lines("data/1.jsonl", tx("a", 1, 20), tx("b", 2, 30))
    project.run()
    project.lines("rules/2.jsonl", {"name": "small", "least": 10})
    project.lines("data/2.jsonl", tx("c", 3, 40))
    project.run()
    assert project.rows("(select id from alerts where name = 'small')", "id") == {("c",)}
    assert [h.node for h in project.plan().stale] == ["alerts"]
    assert project.verify("alerts").datasets[0].result == "stale"

    project.run(RunRequest(backfill="evaluate", only_stale=True))

    assert project.rows("(select id from alerts where name = 'small')", "id") == {("a",), ("b",), ("c",)}
    assert project.plan().stale == ()
    project.assert_verified("alerts")


@pytest.mark.parametrize(
    ("size", "collide"),
    [("small", False), ("middling", True)],
    ids=["small", "middling_every_third_value_collides"],
)
def test_a_cursor_job_replaces_the_values_that_rows_left_and_came_to(
    make: Make, monkeypatch: pytest.MonkeyPatch, size: str, collide: bool
) -> None:
    if size == "middling":
        monkeypatch.setenv("STRANDLINE_THRESHOLDS", "small_table_bytes=0")
    if collide:
        monkeypatch.setattr("strandline.compute.keys.key_hash", tiny_hash)
    project = make(SUMS)
    project.lines("data/1.jsonl", tx("a", 5, 1), tx("b", 5, 2), tx("c", 9, 4), tx("n", None, 8))
    project.run()
    project.lines("data/2.jsonl", tx("a", 9, 1, v=2), tx("b", 2, 2, v=2), tx("late", 1, 16))
    done = result_of(project.run(), "sums")
    assert project.rows("sums", "block", "total") == {
        (9, 5),
        (2, 2),
        (1, 16),
        (None, 8),
    }  # block 5 is empty and gone (L4)
    assert "values of block" in describe_covered(done)
    project.assert_verified()


CHAIN = """
    project: small_chain
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      blocks:
        from: events
        columns:
          {chain: chain, number: {path: number, type: bigint}, hash: hash, parent: parent,
           weight: {path: weight, type: bigint}}
        event_stream: {}
    chains:
      hot:
        from: blocks
        number: number
        hash: hash
        parent: parent
        head: {most_summed: weight}
        group_by: [chain]
        follow: {hot_rows: blocks}
"""


def block(chain: str, number: int, hash: str, parent: str, weight: int = 1) -> dict[str, object]:
    return {"chain": chain, "number": number, "hash": hash, "parent": parent, "weight": weight}


def test_an_announcement_that_turns_out_to_be_the_first_changes_what_a_block_stands_on(
    make_project: Make,
) -> None:
    """If a block is announced twice, the first counts, by position.

    A file that arrives later may come first in the order of the source.
    """
    project = make_project(CHAIN)
    project.lines(
        "data/m.jsonl",
        *(block("x", 1, "r", "q"), block("x", 2, "t", "r", 10), block("x", 2, "u", "r", 8)),
        *(
            block("y", 1, "r", "q"),
            block("y", 2, "p", "r", 2),
            block("y", 2, "o", "r", 2),
            block("y", 3, "z", "p"),
        ),
    )
    project.run()
    project.lines("data/a.jsonl", block("x", 2, "t", "r", 5), block("y", 3, "z", "o"))
    project.run()
    assert project.rows("hot", "chain", "number", "hash") == {
        *(("x", 1, "r"), ("x", 2, "u")),
        *(("y", 1, "r"), ("y", 2, "o"), ("y", 3, "z")),
    }
    project.assert_verified()


def test_a_chain_goes_to_another_branch_and_back_and_an_older_block_moves_its_anchor(
    make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "STRANDLINE_THRESHOLDS", "small_table_bytes=0"
    )  # the example's tables are small; these are looked up
    project = make_project(CHAIN)
    project.lines(
        "data/1.jsonl",
        *(block("x", 5, "a5", "a4"), block("x", 6, "a6", "a5"), block("x", 7, "a7", "a6")),
        *(block("y", 1, "q1", "q0"), block("y", 3, "q3", "q2")),  # q3 waits for its parent
    )
    project.run()
    assert project.rows("hot", "chain", "number", "hash") == {
        ("x", 5, "a5"),
        ("x", 6, "a6"),
        ("x", 7, "a7"),
        ("y", 1, "q1"),
    }
    project.lines("data/2.jsonl", block("x", 6, "b6", "a5", 3), block("y", 2, "q2", "q1"))
    project.run()
    assert project.rows("hot", "chain", "number", "hash") == {
        ("x", 5, "a5"),
        ("x", 6, "b6"),
        *(("y", n, f"q{n}") for n in (1, 2, 3)),
    }
    project.lines("data/3.jsonl", block("x", 8, "a8", "a7", 9), block("x", 6, "b6", "a5", 3))
    done = result_of(project.run(), "hot")
    assert project.rows("hot_rows", "hash") == {(f"a{n}",) for n in (5, 6, 7, 8)} | {
        (f"q{n}",) for n in (1, 2, 3)
    }
    assert done.notes == ("reorg of number 6 to 8",)
    project.lines("data/4.jsonl", block("x", 4, "a4", "a3"))
    assert "the lowest block is another" in describe_covered(result_of(project.run(), "hot"))
    assert ("x", 4, "a4") in project.rows("hot", "chain", "number", "hash")
    project.assert_verified("hot", "hot_rows")
    reorgs = project.query("select row_filter, source_event from data_invalidations order by created_at")
    assert [str(f) for f, _ in reorgs] == [
        '{"chain": {"eq": "x"}, "number": {"gte": 6, "lte": 7}}',
        '{"chain": {"eq": "x"}, "number": {"gte": 6, "lte": 8}}',
    ]


def test_the_longest_and_the_last_announced_branch_are_followed_too(make_project: Make) -> None:
    chain = CHAIN[CHAIN.index("        from: blocks\n        number") : CHAIN.index("        follow")]
    rules = {"longest": "longest", "newest": "{last: weight}", "heaviest": "{most: weight}"}
    chains = "".join(
        f"      {name}:\n" + chain.replace("{most_summed: weight}", rule) for name, rule in rules.items()
    )
    project = make_project(CHAIN[: CHAIN.index("      hot:")] + chains)

    def heads() -> dict[str, object]:
        return {name: max(project.rows(name, "number", "hash"))[1] for name in rules}

    project.lines(
        "data/1.jsonl", block("x", 1, "r", ""), block("x", 2, "a2", "r", 5), block("x", 3, "a3", "a2", 6)
    )
    project.run()
    assert heads() == {"longest": "a3", "newest": "a3", "heaviest": "a3"}
    project.lines("data/2.jsonl", block("x", 2, "b2", "r", 7))
    project.run()
    assert heads() == {"longest": "a3", "newest": "b2", "heaviest": "b2"}
    project.lines("data/3.jsonl", block("x", 3, "b3", "b2", 1), block("x", 4, "b4", "b3", 2))
    project.run()
    assert heads() == {"longest": "b4", "newest": "b2", "heaviest": "b2"}
    project.assert_verified()


def test_partitions_are_built_when_final_and_again_when_a_late_row_falls_in(make: Make) -> None:
    project = make(COLD)
    project.lines("data/1.jsonl", *(tx(f"t{n}", n, n) for n in range(-2, 14)))
    project.run()
    # The newest is 13: 0-10 would be final at 14.
    assert project.rows("cold", "block") == {(-2,), (-1,)}
    assert set(record_of(project, "cold").partitions) == {"-10-0"}
    assert record_of(project, "cold").waiting == ("0-10", "10-20")
    project.assert_verified("cold")

    project.lines("data/2.jsonl", tx("t14", 14, 14))
    project.run()
    assert project.rows("cold", "block") == {(n,) for n in range(-2, 10)}
    assert record_of(project, "cold").waiting == ("10-20",)
    assert record_of(project, "cold").partitions["0-10"].row_count == 10

    before = record_of(project, "cold").partitions
    project.lines(
        "data/3.jsonl", tx("late", 3, 1000), tx("t-1", -1, 0, v=2, op="D"), tx("t-2", -2, 0, v=2, op="D")
    )
    done = result_of(project.run(), "cold")

    after = record_of(project, "cold").partitions
    assert (after["0-10"].row_count, after["-10-0"].row_count) == (11, 0)  # emptied, and said so (L4)
    assert before["0-10"].table_version < after["0-10"].table_version == done.table_version
    assert project.rows("cold", "block", "amount") == {*((n, n) for n in range(10)), (3, 1000)}
    project.assert_verified("cold")


def test_an_unchanged_partition_is_not_written(make: Make) -> None:
    project = make(COLD.replace("select id, block, amount", "select id, block, 1 as amount"))
    project.lines("data/1.jsonl", tx("a", 1, 1), tx("b", 20, 1))
    project.run()
    version = record_of(project, "cold").table_version
    project.lines("data/2.jsonl", tx("a", 1, 2, v=2))
    assert result_of(project.run(), "cold").status is Status.UNCHANGED
    assert record_of(project, "cold").table_version == version


def test_days_are_the_projects_own_and_neighbours_share_no_row(make: Make) -> None:
    project = make(DAILY)
    project.lines(
        "data/1.jsonl",
        tx("a", 1, 1, at="2024-01-01T18:29:59.999999Z"),
        tx("b", 1, 2, at="2024-01-01T18:30:00Z"),  # midnight in Kolkata
        tx("n", 1, 4, at="") | {"at": None},
    )
    project.run()
    assert set(record_of(project, "daily").partitions) == {"2024-01-01", "2024-01-02", "null"}
    project.lines("data/2.jsonl", tx("c", 1, 8, at="2024-01-02T18:29:00Z"), tx("a", 1, 1, v=2, op="D"))
    done = result_of(project.run(), "daily")
    assert {(str(d), t) for d, t in project.rows("daily", "day", "total")} == {
        ("2024-01-02", 10),
        ("None", 4),
    }
    assert describe_covered(done).endswith("2 partitions (2024-01-01, 2024-01-02)")
    project.assert_verified("daily")


IN_PYTHON = """
      - name: monthly
        incremental: {mode: partition, inputs: {tx: {by: [hash, at]}}}
        partition: {column: at, unit: month, by: [hash], final_after: 2 days}
        input_datasets: [tx]
        output_dataset: monthly
        python: jobs.py:monthly
      - name: hourly
        incremental: {mode: partition, inputs: {tx: {by: [at]}}}
        partition: {column: at, unit: hour}
        input_datasets: [tx]
        output_dataset: hourly
        python: jobs.py:hourly
      - name: per_block
        incremental: {mode: cursor, cursor_column: block, inputs: {tx: {by: [block]}}}
        input_datasets: [tx]
        output_dataset: per_block
        python: jobs.py:per_block
"""
FUNCTIONS = """\
def monthly(inputs, context):
    return inputs["tx"].select("hash", "at", "amount")

def hourly(inputs, context):
    return inputs["tx"].select("at", "amount")

def per_block(inputs, context):
    return inputs["tx"].groupBy("block").agg({"amount": "sum"}).withColumnRenamed("sum(amount)", "total")
"""


def test_python_jobs_by_month_and_group_by_hour_and_by_a_cursor(make: Make) -> None:
    project = make()
    project.write("jobs.py", FUNCTIONS)
    project.declare(declare(IN_PYTHON))
    january, february = "2024-01-31T18:29:00Z", "2024-01-31T18:31:00Z"  # around midnight in Kolkata
    project.lines(
        "data/1.jsonl",
        *(
            tx("a", 1, 1, "x", january),
            tx("b", 2, 2, "x", february),
            tx("c", 2, 4, "x", "2024-02-03T00:00:00Z"),
        ),
        *(tx("d", 3, 8, "y/z", january), tx("e", 3, 16, "y/z", "2024-02-01T00:00:00Z")),
    )
    project.run()
    # Of x the newest is three days past January, of y/z one.
    assert set(record_of(project, "monthly").partitions) == {"x/2024-01"}
    assert record_of(project, "monthly").waiting == ("x/2024-02", "y%2Fz/2024-01", "y%2Fz/2024-02")
    assert project.rows("monthly", "hash", "amount") == {("x", 1)}

    project.lines(
        "data/2.jsonl", tx("late", 1, 32, "x", january), tx("f", 4, 64, "y/z", "2024-02-03T00:00:00Z")
    )
    done = project.run()

    assert set(record_of(project, "monthly").partitions) == {"x/2024-01", "y%2Fz/2024-01"}
    assert project.rows("monthly", "hash", "amount") == {("x", 1), ("x", 32), ("y/z", 8)}
    assert describe_covered(result_of(done, "hourly")).endswith("2 partitions (2024-01-31T23, 2024-02-03T05)")
    assert project.rows("per_block", "block", "total") == {(1, 33), (2, 6), (3, 24), (4, 64)}
    project.assert_verified()


def test_stale_partitions_are_named_and_written_by_a_backfill_alone(make: Make) -> None:
    project = make(DAILY)
    project.lines("data/1.jsonl", *(tx(f"t{n}", 1, n, at=f"2024-01-0{n}T01:00:00Z") for n in (1, 2, 3)))
    project.run()
    project.declare(declare(DAILY).replace("factor: 1", "factor: 10"))
    project.lines("data/2.jsonl", tx("t4", 1, 4, at="2024-01-03T02:00:00Z"))
    project.run()
    (held,) = project.plan().stale
    assert (held.node, held.changed, held.partitions) == ("daily", ("config",), ("2024-01-01", "2024-01-02"))

    project.run(RunRequest(backfill="daily", partitions=("2024-01-02",)))
    assert {t for _, t in project.rows("daily", "day", "total")} == {1, 20, 70}
    assert project.plan().stale[0].partitions == ("2024-01-01",)

    project.run(RunRequest(backfill="daily", only_stale=True))
    assert {t for _, t in project.rows("daily", "day", "total")} == {10, 20, 70}
    assert project.plan().stale == ()
    project.assert_verified("daily")

    with pytest.raises(CallError, match="no partition `2024-01-04`") as raised:
        project.run(RunRequest(backfill="daily", partitions=("2024-01-04",)))
    assert raised.value.slug == "unknown-partition"


def test_a_backfill_of_a_filter_runs_those_values_again(make: Make) -> None:
    project = make(SUMS)
    project.lines("data/1.jsonl", tx("a", 1, 1), tx("b", 2, 2), tx("c", 3, 4))
    project.run()
    project.declare(declare(SUMS).replace("sum(amount)", "sum(amount) * 10"))
    project.run(RunRequest(backfill="sums", where="block between 2 and 2"))
    assert project.rows("sums", "block", "total") == {(1, 1), (2, 20), (3, 4)}
    with pytest.raises(CallError) as raised:
        project.run(RunRequest(backfill="sums", where="blok = 2"))
    assert raised.value.slug == "unknown-column"


def test_invalidations_are_processed_once_by_each_job_that_reads_the_dataset(make: Make) -> None:
    project = make(SUMS, COLD, ALERTS)
    project.lines("data/1.jsonl", *(tx(f"t{n}", n, 100 + n) for n in range(30)))
    project.run()

    # A filter that does not fit is refused, and nothing is recorded.
    refused = {
        "blok = 3": "unknown-column",
        "block = 'x'": "filter-type",
        "block = 3 or block = 4": "filter-unknown",
        "_key = 3": "unknown-column",
    }
    for where, slug in refused.items():
        with pytest.raises(CallError) as raised:
            say(project, "tx", where)
        assert raised.value.slug == slug
    assert project.plan().tasks == ()

    invalidation_id = say(project, "tx", "block between 3 and 5")
    say(project, "tx", "block = 7")
    say(project, "tx", partition="10-20")
    assert set(invalidation_id.jobs) == {"sums", "cold", "alerts"}
    plan = project.plan()
    assert {t.node: t.cause for t in plan.tasks} == dict.fromkeys(
        ("sums", "cold", "alerts"), Cause.INVALIDATION
    )
    assert "3 invalidations (correction)" in plan.tasks[0].reason

    outcome = project.run()

    assert {r.node: r.status for r in outcome.results} == dict.fromkeys(
        ("sums", "cold", "alerts"), Status.UNCHANGED
    )
    assert describe_covered(result_of(outcome, "sums")).endswith("14 keys")
    assert "2 partitions (0-10, 10-20)" in describe_covered(result_of(outcome, "cold"))
    assert project.plan().tasks == ()
    with open_workspace(project.folder) as workspace:
        recorded, jobs = read_invalidations(workspace.catalog, ("sums", "cold", "alerts"))
    assert [(i["dataset"], i["scope"], i["partition_key"], i["reason"]) for i in recorded] == [
        ("tx", "row_range", None, "correction"),
        ("tx", "row_range", None, "correction"),
        ("tx", "partition", "10-20", "correction"),
    ]
    assert recorded[0]["row_filter"] == {"block": {"gte": 3, "lte": 5}}
    assert all(i["processed_at"] for i in recorded)
    assert len(jobs) == 9
    assert all(j["processed_at"] for j in jobs)
    project.assert_verified("sums", "cold")


def test_a_changed_unique_key_freezes_and_a_backfill_keeps_all_that_was_published(make: Make) -> None:
    project = make(ALERTS)
    project.lines("data/1.jsonl", tx("a", 1, 150))
    project.run()
    project.lines("data/2.jsonl", tx("a", 1, 150, v=2, op="D"))
    project.run()
    project.declare(declare(ALERTS).replace("[name, hash, id]", "[name, id]"))
    assert [h.node for h in project.plan().frozen] == ["alerts"]
    project.lines("data/3.jsonl", tx("b", 2, 300))
    project.run(replace(RunRequest(), select=None))
    project.run(RunRequest(backfill="evaluate"))
    assert ("large", "h1", "a") in project.rows("alerts", "name", "hash", "id")
    assert ("large", "h2", "b") in project.rows("alerts", "name", "hash", "id")
    assert project.plan().frozen == ()
