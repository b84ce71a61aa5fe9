"""Published events and changes of real data: Wikipedia's edits, change messages of four systems, forks.

What is expected is computed in plain Python from the same files. Ids are hashed here, not by the engine.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.rebuild_catalog import rebuild_catalog
from tests.harness import TestProject
from tests.spark.test_real_chains import find_branch, read_csv, write_csv

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]
Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_id(trigger: str, key: str, source_timestamp: int, n: int = 1) -> str:
    text = f"{trigger}:{key}:{source_timestamp}" + (f":{n}" if n > 1 else "")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def escape(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def read_log(project: TestProject, dataset: str) -> list[Row]:
    columns = ("version", "position", "operation", "key", "source_timestamp", "fields", "data", "before")
    rows = project.query(f"select {', '.join(columns)} from {dataset}_changes order by version, position")
    log = [dict(zip(columns, row, strict=True)) for row in rows]
    for change in log:
        for column in ("data", "before"):
            change[column] = json.loads(change[column]) if change[column] is not None else None
    return log


def fold_log(log: Iterable[Row]) -> dict[str, Row]:
    """The rows that a log gives from its start. Each change must fit what came before it."""
    rows: dict[str, Row] = {}
    places = [(-1, -1)]
    for change in log:
        key, old = change["key"], rows.get(change["key"])
        places.append((change["version"], change["position"]))
        match change["operation"]:
            case "INSERT":
                assert old is None
                rows[key] = change["data"]
            case "UPDATE":
                assert old is not None
                assert {name: old[name] for name in change["fields"]} == change["before"]
                assert {name for name in old if old[name] != change["data"][name]} == set(change["fields"])
                rows[key] = change["data"]
            case "DELETE":
                assert rows.pop(key) == change["data"]
            case other:
                raise AssertionError(f"{other} is not expected here")
    assert all(earlier < later for earlier, later in pairwise(places))
    return rows


# Wikipedia

EDITS = """
    project: wikipedia
    sources:
      edit_rows: {files: "edits/*.parquet"}
    datasets:
      edits:
        from: edit_rows
        event_stream: {identity: [channel, page, event_time]}
        source_at: event_time
    triggers:
      edited:
        from: edits
        fire: {}
        guard: {max_events: 100000}
"""


def deliver_edits(project: TestProject, edits: pa.Table, cuts: Iterable[int]) -> None:
    """The edits in batches, with a run for each."""
    (project.folder / "edits").mkdir()
    for first, last in pairwise((0, *cuts, edits.num_rows)):
        pq.write_table(edits.slice(first, last - first), project.folder / f"edits/{first:06}.parquet")
        project.run()


def read_events(project: TestProject) -> set[tuple[Any, ...]]:
    return project.rows("edited", "event_id", "event_type", "key", "source_timestamp", "n", "quiet")


def test_every_edit_of_wikipedia_is_one_event_whose_id_depends_on_nothing_else(
    make_project: Make, shared_data: Path, tmp_path: Path
) -> None:
    edits = pq.read_table(shared_data / "4_live_changes/wikipedia_edits_2015-09-12.parquet")
    expected = set()
    for edit in edits.select(["channel", "page", "event_time"]).to_pylist():
        at = edit["event_time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        key = ",".join(map(escape, (edit["channel"], edit["page"], at)))
        ts = (edit["event_time"] - EPOCH) // (EPOCH.resolution)
        expected.add((make_id("edited", key, ts), "MATCH", key, ts, 1, False))
    assert len({event[0] for event in expected}) == edits.num_rows == 39_244
    assert sum("%3A" in key.rpartition(",")[0] for _, _, key, *_ in expected) > 7_000
    assert sum("%2C" in key for _, _, key, *_ in expected) > 1_000

    project = make_project(EDITS)
    deliver_edits(project, edits, (9_000, 30_000))

    assert read_events(project) == expected
    log = read_log(project, "edits")
    assert {change["operation"] for change in log} == {"INSERT"}
    assert {change["key"] for change in log} == {event[2] for event in expected}

    rebuild_catalog(project.folder)
    backwards = edits.take(pa.array(range(edits.num_rows - 1, -1, -1)))
    pq.write_table(backwards.slice(0, 500), project.folder / "edits/again.parquet")  # nothing new
    project.run()

    assert read_events(project) == expected

    other = TestProject.create(tmp_path / "other", EDITS)
    deliver_edits(other, backwards, ())

    assert read_events(other) == expected


# Change messages

PRODUCTS = """
    project: products
    sources:
      debezium_messages: {files: "debezium/*.jsonl"}
      canal_messages: {files: "canal/*.jsonl"}
      maxwell_messages: {files: "maxwell/*.jsonl"}
      ogg_messages: {files: "ogg/*.jsonl"}
    datasets:
      debezium:
        from: debezium_messages
        columns:
          id: {sql: "coalesce(after.id, before.id)", type: bigint}
          name: {sql: "coalesce(after.name, before.name)", type: string}
          description: {sql: "coalesce(after.description, before.description)", type: string}
          weight: {sql: "coalesce(after.weight, before.weight)", type: double}
          op: op
        record_set: {key: [id], order_by: [_source_position], deleted: "op = 'd'"}
        source_at: {path: ts_ms, type: timestamp_ms}
      canal:
        from: canal_messages
        explode: data
        columns:
          id: {path: item.id, type: bigint}
          name: item.name
          description: item.description
          weight: {path: item.weight, type: double}
          op: type
        record_set: {key: [id], order_by: [_source_position], deleted: "op = 'DELETE'"}
        source_at: {path: ts, type: timestamp_ms}
      maxwell:
        from: maxwell_messages
        columns:
          id: {path: data.id, type: bigint}
          name: data.name
          description: data.description
          weight: {path: data.weight, type: double}
          op: type
        record_set: {key: [id], order_by: [_source_position], deleted: "op = 'delete'"}
        source_at: {path: ts, type: bigint}
      ogg:
        from: ogg_messages
        columns:
          id: {sql: "coalesce(after.id, before.id)", type: bigint}
          name: {sql: "coalesce(after.name, before.name)", type: string}
          description: {sql: "coalesce(after.description, before.description)", type: string}
          weight: {sql: "coalesce(after.weight, before.weight)", type: double}
          op: op_type
          pos: pos
        record_set: {key: [id], order_by: [pos], deleted: "op = 'D'"}
        source_at: {path: op_ts, type: timestamp}
    publish: [debezium, canal, maxwell, ogg]
"""
FILES = {
    "debezium": "flink_debezium-data-schema-exclude.jsonl",
    "canal": "flink_canal-data.jsonl",
    "maxwell": "flink_maxwell-data.jsonl",
    "ogg": "flink_ogg-data.jsonl",
}
COLUMNS = ("id", "name", "description", "weight")


def changes_of(system: str, message: Row) -> Iterator[tuple[Row, bool, int]]:
    """Of each row in a message: the row, whether it is gone, and when that happened."""
    match system:
        case "debezium":
            yield message["after"] or message["before"], message["op"] == "d", message["ts_ms"]
        case "ogg":
            at = datetime.fromisoformat(message["op_ts"]).replace(tzinfo=UTC)
            gone = message["op_type"] == "D"
            yield message["after"] or message["before"], gone, (at - EPOCH) // EPOCH.resolution
        case "maxwell":
            yield message["data"], message["type"] == "delete", message["ts"]
        case "canal":
            for row in message["data"] or ():
                row = {**row, "id": int(row["id"]), "weight": float(row["weight"])}
                yield row, message["type"] == "DELETE", message["ts"]


def test_the_change_log_of_each_system_ends_with_the_table_that_its_messages_give(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / "4_live_changes/cdc_envelopes"
    lines = {system: (folder / name).read_text().splitlines() for system, name in FILES.items()}
    project = make_project(PRODUCTS)
    tables: dict[str, dict[str, Row]] = {system: {} for system in FILES}
    times: dict[str, dict[str, int]] = {system: {} for system in FILES}
    last: dict[str, int] = dict.fromkeys(FILES, 0)
    seen: Counter[str] = Counter()

    for share in (0.6, 0.95, 1.0):
        for system, of_system in lines.items():
            upto = max(round(len(of_system) * share), 1)
            batch = [json.loads(line) for line in of_system[last[system] : upto]]
            project.add_lines(made(project, f"{system}/all.jsonl"), *batch)
            last[system] = upto
            for row, is_gone, at in (change for message in batch for change in changes_of(system, message)):
                key = str(row["id"])
                times[system][key] = at
                if is_gone:
                    tables[system].pop(key, None)
                else:
                    tables[system][key] = {name: row[name] for name in COLUMNS}
        project.run()
        for system, table in tables.items():
            log = read_log(project, system)
            folded = fold_log(log)
            assert shown(folded) == table, system
            assert project.rows(system, *COLUMNS) == {tuple(row.values()) for row in table.values()}
            newest = {change["key"]: change for change in log}
            assert {key: change["source_timestamp"] for key, change in newest.items()} == {
                key: at for key, at in times[system].items() if key in newest
            }
            seen.update(change["operation"] for change in log)

    assert set(seen) == {"INSERT", "UPDATE", "DELETE"}
    assert [len(tables[system]) for system in FILES] == [10, 8, 8, 10]


def made(project: TestProject, path: str) -> str:
    (project.folder / path).parent.mkdir(exist_ok=True)
    return path


def shown(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {key: {name: row[name] for name in COLUMNS} for key, row in rows.items()}


# Forks

FORKS = """
    project: forks
    sources:
      block_rows: {files: "blocks/*.csv"}
    datasets:
      blocks:
        from: block_rows
        columns:
          seq: {type: bigint}
          block_number: {type: bigint}
          difficulty: {type: bigint}
          block_timestamp: {type: bigint}
        event_stream: {identity: [scenario, block_hash]}
        source_at: block_timestamp
    chains:
      hot_blocks:
        from: blocks
        number: block_number
        hash: block_hash
        parent: parent_hash
        head: {most_summed: difficulty}
        order_by: [seq]
        group_by: [scenario]
        anchor: 1
    triggers:
      canonical:
        from: hot_blocks
        fire: {}
"""


def test_the_change_log_of_blocks_ends_on_each_head_and_a_block_that_comes_back_has_a_new_id(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / "1_blockchain"
    blocks = sorted(read_csv(folder / "eth_fork_blocks.csv"), key=lambda block: int(block["seq"]))
    heads = read_csv(folder / "eth_fork_expected_head.csv")
    project = make_project(FORKS)
    at = {(b["scenario"], b["block_hash"]): int(b["block_timestamp"]) for b in blocks}
    canonical: dict[tuple[str, str], int] = {}
    counted: Counter[tuple[str, int]] = Counter()
    adopted: Counter[tuple[str, str]] = Counter()
    expected: set[tuple[Any, ...]] = set()
    gone = 0

    for nth, (first, last) in enumerate(pairwise((0, 6, 10, 12, 1_000))):
        batch = [block for block in blocks if first < int(block["seq"]) <= last]
        write_csv(project, f"blocks/{nth}.csv", batch)
        known = [block for block in blocks if int(block["seq"]) <= last]
        before, canonical = canonical, {}
        for scenario in {block["scenario"] for block in known}:
            branch = find_branch(block for block in known if block["scenario"] == scenario)
            canonical |= {(scenario, b["block_hash"]): int(b["block_number"]) for b in branch}
        project.run()

        folded = fold_log(read_log(project, "hot_blocks"))
        assert {(row["scenario"], row["block_hash"]): row["block_number"] for row in folded.values()} == (
            canonical
        )
        # A block that left has the time of the one in its place.
        in_place = {(scenario, number): at[scenario, name] for (scenario, name), number in canonical.items()}
        for block in sorted(before.keys() - canonical.keys() | canonical.keys() - before.keys()):
            is_on, key = block in canonical, ",".join(map(escape, block))
            ts = at[block] if is_on else in_place.get((block[0], before[block]))
            if ts is None:
                gone += 1  # a branch that is shorter: its place is empty
                continue
            counted[key, ts] += 1
            adopted[block] += is_on
            n = counted[key, ts]
            event_type = "MATCH" if is_on else "UNMATCH"
            expected.add((make_id("canonical", key, ts, n), event_type, key, ts, n))
        events = project.query("select event_id, event_type, key, source_timestamp, n from canonical")
        assert len({event[0] for event in events}) == len(events)
        assert expected <= set(events)
        assert len(events) == len(expected) + gone

    newest = {
        scenario: max((n, name) for (s, name), n in canonical.items() if s == scenario)[1]
        for scenario, _ in canonical
    }
    for head in heads:
        assert newest.get(head["scenario"], head["genesis_hash"]) == head["expected_head_hash"]
    assert sum(times > 1 for times in adopted.values()) >= 5
    project.assert_verified("hot_blocks", "hot_blocks_changes", "canonical")
