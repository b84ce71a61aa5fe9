"""Change logs, views and triggers over every kind of dataset with a row key, compared with plain Python."""

import json
import math
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from strandline.app.planning import RunRequest
from strandline.app.query import query
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.app.workspace import open_workspace
from strandline.lake.log import read_entries
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.events import make_event_id
from strandline.model.json_values import write_json
from strandline.publish.trigger import worker as trigger_worker
from tests.harness import PATHS, TestProject, result_of

pytestmark = pytest.mark.spark

YAML = """
project: desk
sources:
  trade_events: {files: "trades/*.jsonl"}
  tick_events: {files: "ticks/*.jsonl"}
  block_events: {files: "blocks/*.jsonl"}
  order_events: {files: "orders/*.jsonl"}
datasets:
  trades:
    from: trade_events
    columns:
      trade_id: {path: id, type: bigint}
      book: book
      quantity: {path: quantity, type: bigint}
      price: {path: price, type: double}
      day: {path: day, type: date}
      at: {path: at, type: timestamp_us}
      op: op
    record_set: {key: [trade_id, book], order_by: [at], deleted: "op = 'D'"}
  ticks:
    from: tick_events
    columns: {symbol: symbol, seq: {path: seq, type: bigint}, price: {path: price, type: "decimal(12,4)"}}
    event_stream: {identity: [symbol, seq]}
    source_at: seq
  blocks:
    from: block_events
    columns:
      number: {path: number, type: bigint}
      hash: hash
      parent: parent
      at: {path: at, type: timestamp_ms}
    source_at: at
    event_stream: {identity: [number, hash]}
  lines:
    from: order_events
    explode: lines
    columns:
      order_id: order
      line_id: item.id
      amount: {path: item.amount, type: bigint}
      at: {path: at, type: timestamp_ms}
    record_set: {key: [order_id, line_id], order_by: [at], children: replace}
  per_book: {key: [book, day]}
chains:
  chain: {from: blocks, number: number, hash: hash, parent: parent, head: longest, order_by: [at]}
jobs:
  - name: per_book
    input_datasets: [trades]
    output_dataset: per_book
    incremental: {mode: keyed, key: [book]}
    sql: SELECT book, day, sum(quantity) AS quantity, sum(price) AS value FROM trades GROUP BY book, day
  - name: seen
    input_datasets: [trades]
    output_dataset: seen
    incremental: {mode: cursor, cursor_column: book, unique_key: [book, trade_id]}
    update_strategy: append
    sql: SELECT book, trade_id, quantity FROM trades WHERE quantity > 100
publish: [trades, ticks, chain, lines, per_book, seen]
views:
  large:
    from: trades
    where: {quantity: {_gte: 100}}
    calculated: {notional: "quantity * price"}
  low_blocks: {from: chain, where: {number: {_lt: 100}}}
triggers:
  alert:
    from: trades
    fire: {quantity: {_gte: 100}}
    clear: {quantity: {_lt: 90}}
  loss:
    from: per_book
    fire: {value: {_lt: 0}}
"""
DATASETS = {
    "trades": ("trade_id", "book"),
    "ticks": ("symbol", "seq"),
    "chain": ("hash",),
    "lines": ("order_id", "line_id"),
    "per_book": ("book", "day"),
    "seen": ("book", "trade_id"),
    "large": ("trade_id", "book"),
    "low_blocks": ("hash",),
}
LOG = "version, position, operation, key, source_timestamp, fields, data, before"


def trade(number: int, quantity: int, at: int, op: str = "I", book: str = "a:b,%", **more: Any) -> object:
    return (
        {"id": number, "book": book, "quantity": quantity, "price": 0.1 * quantity - 20, "at": at, "op": op}
        | {"day": "2024-01-02"}
        | more
    )


def block(number: int, name: str, parent: str, at: int) -> object:
    return {"number": number, "hash": name, "parent": parent, "at": at}


def order(number: int, at: int, **amounts: int) -> object:
    return {"order": number, "at": at, "lines": [{"id": k, "amount": v} for k, v in amounts.items()]}


def write_day(project: TestProject, day: int) -> None:
    match day:
        case 1:
            project.lines("trades/1.jsonl", trade(1, 150, 10), trade(2, 95, 11), trade(3, 10, 12, price=None))
            project.lines("ticks/1.jsonl", {"symbol": "x", "seq": 1, "price": "1.5"})
            project.lines("blocks/1.jsonl", block(1, "a", "", 1000), block(2, "b", "a", 2000))
            project.lines("orders/1.jsonl", order(1, 10, p=1, q=2), order(2, 10, p=7))
        case 2:
            project.lines(
                "trades/2.jsonl",
                trade(1, 95, 20),
                trade(2, 100, 21),
                trade(3, 0, 22, "D"),
                trade(4, 500, 23, book="é"),
            )
            project.lines(
                "ticks/2.jsonl", {"symbol": "x", "seq": 2, "price": "2"}, {"symbol": None, "seq": 3}
            )
            project.lines("blocks/2.jsonl", block(2, "c", "a", 3000), block(3, "d", "c", 4000))
            project.lines("orders/2.jsonl", order(1, 20, q=2, r=3), order(2, 20))
        case 3:
            project.lines(
                "trades/3.jsonl", trade(1, 80, 30), trade(4, 0, 31, "D", book="é"), trade(2, 100, 32)
            )
            project.lines("blocks/3.jsonl", block(3, "e", "b", 5000), block(4, "f", "e", 6000))


def read_state(project: TestProject, dataset: str) -> dict[str, dict[str, Any]]:
    """The rows of a dataset as JSON, by the text of their key, written here."""
    rows = [json.loads(row[0]) for row in read_json(project, dataset)]
    return {",".join(escape(row[c]) for c in DATASETS[dataset]): row for row in rows}


def read_json(project: TestProject, dataset: str) -> list[tuple[str]]:
    with open_workspace(project.folder) as workspace:
        answer = query(workspace, f"SELECT * FROM {dataset}")
    return [(write_json(dict(zip(answer.columns, row, strict=True))),) for row in answer.rows]


def escape(value: object) -> str:
    if value is None:
        return "%00"
    return str(value).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other


def expect_changes(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]
) -> list[tuple[Any, ...]]:
    expected: list[tuple[Any, ...]] = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is None and new is not None:
            expected.append(("INSERT", key, list(new), new, None))
        elif new is None and old is not None:
            expected.append(("DELETE", key, list(old), old, old))
        elif old is not None and new is not None:
            fields = [name for name in new if not same(old[name], new[name])]
            if fields:
                expected.append(("UPDATE", key, fields, new, {name: old[name] for name in fields}))
    return expected


def read_log(project: TestProject, dataset: str) -> list[tuple[Any, ...]]:
    return project.query(f"SELECT {LOG} FROM {dataset}_changes ORDER BY version, position")


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[TestProject]:
    """The project after each of three days. Never changed; tests work on copies."""
    folder = tmp_path_factory.mktemp("published")
    project = TestProject.create(folder / "1", YAML)
    write_day(project, 1)
    project.run()
    made = [project]
    for day in (2, 3):
        project = project.copy(folder / str(day))
        write_day(project, day)
        project.run()
        made.append(project)
    return made


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_log_has_the_net_changes_of_each_commit_in_the_order_of_keys(
    days: list[TestProject], dataset: str
) -> None:
    before: dict[str, dict[str, Any]] = {}
    read = 0
    for project in days:
        after, log = read_state(project, dataset), read_log(project, dataset)
        new = log[read:]
        told = [
            (row[2], row[3], list(row[5]), json.loads(row[6]), row[7] and json.loads(row[7])) for row in new
        ]
        assert told == expect_changes(before, after)
        assert [row[1] for row in new] == list(range(len(new)))
        before, read = after, len(log)


def test_the_time_of_a_change_is_that_of_the_fact_behind_it(days: list[TestProject]) -> None:
    times = {
        dataset: {(row[2], row[3], row[0]): row[4] for row in read_log(days[-1], dataset)}
        for dataset in DATASETS
    }

    def of(dataset: str, operation: str, key: str) -> list[int]:
        return [time for (op, k, _), time in times[dataset].items() if (op, k) == (operation, key)]

    assert of("trades", "INSERT", "1,a%3Ab%2C%25") == [10]
    assert of("trades", "UPDATE", "1,a%3Ab%2C%25") == [20, 30]
    assert of("trades", "DELETE", "3,a%3Ab%2C%25") == [22]
    assert of("large", "DELETE", "1,a%3Ab%2C%25") == [20]
    assert of("large", "DELETE", "4,é") == [31]
    assert of("large", "INSERT", "2,a%3Ab%2C%25") == [21]
    assert of("ticks", "INSERT", "x,2") == [2]
    assert of("chain", "DELETE", "b") == [3000]
    assert of("low_blocks", "DELETE", "b") == [3000]
    assert sorted(of("chain", "INSERT", "b")) == [2000, 2000]
    assert of("chain", "DELETE", "c") == [2000]
    assert of("lines", "DELETE", "1,p") == [20]
    assert of("lines", "DELETE", "2,p") == [20]
    assert all(time > 1_700_000_000_000 for time in times["per_book"].values())


def test_events_follow_from_the_log(days: list[TestProject]) -> None:
    events = days[-1].query(
        "SELECT event_id, event_type, key, source_timestamp, n, revision, quiet FROM alert"
        " ORDER BY version, position"
    )

    first, second = "1,a%3Ab%2C%25", "2,a%3Ab%2C%25"
    expected = [
        ("MATCH", first, 10, 1),
        ("MATCH", second, 21, 1),
        ("MATCH", "4,é", 23, 1),
        ("UNMATCH", first, 30, 1),
        ("UNMATCH", "4,é", 31, 1),
    ]
    assert events == [
        (make_event_id("alert", k, t, n), kind, k, t, n, 1, False) for kind, k, t, n in expected
    ]


def test_everything_that_is_published_verifies(days: list[TestProject]) -> None:
    days[-1].assert_verified(*DATASETS, *(f"{name}_changes" for name in DATASETS), "alert", "loss")


def test_the_feed_tells_what_the_compare_step_hands_on(days: list[TestProject], tmp_path: Path) -> None:
    """Two commits that a log has not read are told as if it had read each one."""
    project = days[0].copy(tmp_path / "late")
    for day in (2, 3):
        write_day(project, day)
        project.run(RunRequest(select="+trades +ticks +chain +lines +per_book +seen +large +low_blocks"))

    project.run()

    assert_same(days[-1], project)
    project.assert_verified("trades_changes", "large_changes", "alert")


def assert_same(one: TestProject, other: TestProject) -> None:
    """The logs and events of two projects that received the same."""
    for dataset in DATASETS:
        derived = dataset in ("per_book", "seen")  # their times are those of commits
        logs = [
            [(*row[:4], *row[5:]) if derived else row for row in read_log(project, dataset)]
            for project in (one, other)
        ]
        assert logs[0] == logs[1], dataset
    ask = "SELECT event_id, event_type, n, version, position, quiet FROM alert ORDER BY version, position"
    assert other.query(ask) == one.query(ask)


def test_every_path_that_sizes_choose_tells_the_same(
    days: list[TestProject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = days[0].copy(tmp_path / "paths")
    for day, path in ((2, "large"), (3, "looked_up")):  # `days` has taken the others
        monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
        write_day(project, day)
        project.run()

    assert_same(days[-1], project)


def test_a_trigger_that_is_added_reads_no_row_and_tells_what_changes_from_then_on(
    days: list[TestProject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_worker, "UNCOMMITTED", 1)
    project = days[1].copy(tmp_path / "added")
    existing = "  there: {from: trades, fire: {quantity: {_gte: 100}}, existing: deliver}\n"
    project.declare(YAML + existing + "  small:\n    from: trades\n    fire: {quantity: {_lt: 97}}\n")

    outcome = project.run()

    assert project.query("SELECT event_type, key, source_timestamp, quiet FROM there ORDER BY key") == [
        ("MATCH", "2,a%3Ab%2C%25", 21, False),
        ("MATCH", "4,é", 23, False),
    ]
    assert (result_of(outcome, "small").rows_read, project.query("SELECT * FROM small")) == (0, [])
    write_day(project, 3)
    project.run()
    # 1 was below 97 before, and stays: only 4, which left, and nothing else moved.
    assert project.query("SELECT event_type, key, quiet FROM small") == []
    # The commit that says so is found when the catalog is lost: an edited trigger does not read it again.
    assert find_last_commit(project, "small").operation is Operation.COUNTS
    rebuild_catalog(project.folder)
    project.declare(YAML + existing + "  small:\n    from: trades\n    fire: {quantity: {_lt: 85}}\n")
    project.lines("trades/4.jsonl", trade(1, 200, 40), trade(2, 50, 41))
    project.run()
    assert project.query("SELECT event_type, key, quiet, revision FROM small ORDER BY key") == [
        ("UNMATCH", "1,a%3Ab%2C%25", False, 2),
        ("MATCH", "2,a%3Ab%2C%25", False, 2),
    ]
    outcome = project.run(RunRequest(backfill="small"))
    assert result_of(outcome, "small").rows_written == 0
    compared = find_last_commit(project, "small")
    assert (compared.operation, compared.counts) == (Operation.COUNTS, {"compared": 1})
    # The dataset is built anew, so its versions begin again, and so does the revision.
    rmtree(project.folder / ".strandline" / "lake" / "trades")
    project.lines("trades/5.jsonl", trade(2, 300, 50))
    project.run(RunRequest(select="+there +small"))
    assert project.query("SELECT event_type, key, version, revision FROM there ORDER BY recorded_at")[-1] == (
        "MATCH",
        "2,a%3Ab%2C%25",
        0,
        2,
    )
    project.assert_verified("small", "there")


def find_last_commit(project: TestProject, dataset: str) -> CommitMetadata:
    with open_workspace(project.folder) as workspace:
        *_, last = read_entries(workspace.lake.table(dataset), -1)
    assert last.metadata is not None
    return last.metadata


def test_an_edited_view_is_compared_with_what_it_published(days: list[TestProject], tmp_path: Path) -> None:
    project = days[1].copy(tmp_path / "edited")
    project.declare(YAML.replace("where: {quantity: {_gte: 100}}", "where: {quantity: {_gte: 97}}"))
    project.lines("trades/4.jsonl", trade(9, 98, 50))

    plan = project.plan()
    project.run()

    assert not [h.node for h in (*plan.stale, *plan.frozen, *plan.held)]
    told = [(row[2], row[3]) for row in read_log(project, "large")][-1:]
    assert told == [("INSERT", "9,a%3Ab%2C%25")]
    project.assert_verified("large", "large_changes")
    before = read_log(project, "large")
    project.run(RunRequest(backfill="trades"))
    assert read_log(project, "large") == before
    project.assert_verified("trades_changes", "large", "large_changes")
