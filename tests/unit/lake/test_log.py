"""Entries of a Delta log, read without Spark: their author, their rows, and work for readers (L6, L13)."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from strandline.dispatch.settle import foreign_versions
from strandline.lake.damage import Ailment, find_damage
from strandline.lake.files import read_files
from strandline.lake.log import count_added, list_versions, parse_entry, read_entries
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.metadata import to_json
from strandline.model.plan import Cursor
from strandline.model.scope import Rows

AT = 1_700_000_000_123


def metadata(operation: Operation = Operation.APPEND, token: int = 7) -> CommitMetadata:
    return CommitMetadata(
        run="run-1",
        task=f"run-1/item_facts/{token}",
        node="item_facts",
        token=token,
        operation=operation,
        inputs={"events": Cursor(table_id="source-id", version=3)},
        scope=Rows(count=2),
        cause="new_input",
        config=WrittenConfig(hash="abc", parts={}),
        whole=False,
        as_of="2024-01-01T00:00:00+00:00",
        counts={"offered": 2, "accepted": 2},
        rows=5,
    )


def info(operation: str = "WRITE", user: str | None = None, **more: object) -> dict[str, object]:
    entry = {"timestamp": AT + 1, "inCommitTimestamp": AT, "operation": operation, **more}
    return {"commitInfo": entry | ({"userMetadata": user} if user is not None else {})}


def add(path: str, rows: int | None = 2, *, change: bool = True, vector: bool = False) -> dict[str, object]:
    entry: dict[str, object] = {"path": path, "size": 100, "dataChange": change}
    if rows is not None:
        entry["stats"] = json.dumps({"numRecords": rows})
    if vector:
        entry["deletionVector"] = {"storageType": "u", "pathOrInlineDv": "x", "cardinality": 1}
    return {"add": entry}


def remove(path: str, *, change: bool = True) -> dict[str, object]:
    return {"remove": {"path": path, "dataChange": change, "deletionTimestamp": AT}}


def text(*actions: dict[str, object]) -> str:
    return "\n".join(json.dumps(action) for action in actions)


def test_a_commit_of_ours_says_what_it_is() -> None:
    ours = metadata()

    entry = parse_entry(
        4,
        text(
            info(user=to_json(ours)),
            {"txn": {"appId": "item_facts", "version": 7, "lastUpdated": AT}},
            {"metaData": {"id": "table-id", "configuration": {}}},
            add("part-0.parquet", 2),
            add("part%20with%20blanks.parquet", 3),
        ),
    )

    assert entry.metadata == ours
    assert entry.tokens == {"item_facts": 7}
    assert entry.table_id == "table-id"
    assert entry.committed_at == datetime.fromtimestamp(AT / 1000, UTC), (
        "the in-commit timestamp, not the writer's clock"
    )
    assert [(f.path, f.rows) for f in entry.added] == [("part-0.parquet", 2), ("part with blanks.parquet", 3)]
    assert entry.changes_rows
    assert not entry.removes_rows
    assert (entry.summary().rows_added, entry.summary().bytes_added, entry.summary().foreign) == (
        5,
        200,
        False,
    )


def test_the_record_of_a_commit_is_ours_alone() -> None:
    ours = parse_entry(4, text(info(user=to_json(metadata())), add("a")))
    theirs = parse_entry(5, text(info(), add("a")))

    record = ours.record("table-id")

    assert record is not None
    assert (record.table_id, record.version, record.metadata.task) == ("table-id", 4, "run-1/item_facts/7")
    assert theirs.record("table-id") is None


def test_a_commit_without_our_metadata_that_changes_rows_is_foreign() -> None:
    appended = parse_entry(5, text(info(), add("a", 1)))
    deleted = parse_entry(6, text(info("DELETE"), remove("a")))

    assert appended.summary().foreign
    assert deleted.summary().foreign
    assert deleted.removes_rows
    assert deleted.summary().rows_added == 0


def test_what_was_adopted_is_foreign_no_more_and_what_came_later_is() -> None:
    """By version: a foreign commit before ours that nobody looked at stays foreign (L13)."""
    adopting = replace(metadata(Operation.ADOPT), adopted=(5,))
    entries = [
        parse_entry(5, text(info(), add("a"))),
        parse_entry(6, text(info(), add("b"))),
        parse_entry(7, text(info(user=to_json(adopting)))),
    ]

    assert foreign_versions(entries) == (6,)
    assert foreign_versions(entries[:2]) == (5, 6)
    assert [e.version for e in entries if e.changes_rows] == [5, 6], "readers have both to read"


def test_what_an_overwrite_of_ours_came_after_is_foreign_no_more() -> None:
    entries = [
        parse_entry(5, text(info(), add("a"))),
        parse_entry(6, text(info(user=to_json(metadata(Operation.OVERWRITE))), add("b"))),
        parse_entry(7, text(info(), add("c"))),
    ]

    assert foreign_versions(entries[:2]) == ()
    assert foreign_versions(entries) == (7,)


@pytest.mark.parametrize(
    "user",
    [
        "garbage",
        "{",
        "null",
        "[]",
        '{"strandline": 2}',
        '{"strandline": 1}',
        '{"strandline": "1", "run": "r"}',
        "strandline",
        "7",
    ],
)
def test_garbage_in_user_metadata_is_foreign_and_never_an_error(user: str) -> None:
    entry = parse_entry(5, text(info(user=user), add("a")))

    assert entry.metadata is None
    assert entry.summary().foreign


def test_a_compaction_changes_no_rows_and_is_not_foreign() -> None:
    entry = parse_entry(
        6,
        text(
            info("OPTIMIZE"),
            add("big", 5, change=False),
            remove("a", change=False),
            remove("b", change=False),
        ),
    )

    assert not entry.data_change
    assert not entry.changes_rows
    assert not entry.summary().foreign


def test_a_change_of_properties_changes_no_rows() -> None:
    entry = parse_entry(
        6,
        text(
            info("SET TBLPROPERTIES"), {"metaData": {"id": "table-id"}}, {"protocol": {"minReaderVersion": 3}}
        ),
    )

    assert not entry.changes_rows
    assert entry.added == ()


@pytest.mark.parametrize("operation", Operation)
def test_fences_purges_and_counts_give_readers_nothing_to_do(operation: Operation) -> None:
    entry = parse_entry(6, text(info(user=to_json(metadata(operation))), add("a", vector=True), remove("a")))

    quiet = {"fence", "purge", "invalidate", "counts", "compact", "statistics", "clean", "adopt"}
    assert entry.changes_rows is (operation not in quiet)
    assert not entry.summary().foreign


def test_a_file_that_only_got_a_deletion_vector_adds_no_rows() -> None:
    entry = parse_entry(7, text(info(), remove("a"), add("a", 9, vector=True), add("b", 1)))

    assert [f.path for f in entry.added] == ["b"]
    assert entry.removes_rows


def test_missing_statistics_blank_lines_and_an_empty_entry_are_read() -> None:
    entry = parse_entry(7, "\n" + text(add("a", None)) + "\n\n")
    empty = parse_entry(8, "")

    assert entry.added[0].rows == 0
    assert (entry.committed_at, entry.operation) == (None, "")
    assert (empty.changes_rows, empty.metadata, empty.summary().foreign) == (False, None, False)


def test_entries_are_read_in_order_after_a_version_and_other_files_are_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, entry in enumerate(
        (
            text(info(), add("a", 1)),
            text(info("OPTIMIZE"), add("b", 1, change=False)),
            text(info(), add("c", 4)),
        )
    ):
        (log / f"{version:020}.json").write_text(entry)
    for other in (
        "00000000000000000001.checkpoint.parquet",
        "00000000000000000001.crc",
        "_last_checkpoint",
        ".00000000000000000003.json.tmp",
    ):
        (log / other).write_text("not an entry")

    assert list_versions(str(tmp_path)) == [0, 1, 2]
    assert [e.version for e in read_entries(str(tmp_path), 0)] == [1, 2]
    assert count_added(str(tmp_path), -1, 2) == 5
    assert count_added(str(tmp_path), -1, 1) == 1
    assert count_added(f"file://{tmp_path}", 1, 2) == 4


def test_there_is_no_version_where_there_is_no_table(tmp_path: Path) -> None:
    assert list_versions(str(tmp_path / "nowhere")) == []
    assert list(read_entries(str(tmp_path / "nowhere"), -1)) == []


def test_what_ends_a_line_elsewhere_ends_none_in_a_log(tmp_path: Path) -> None:
    """Statistics contain values, and Spark does not escape U+2028, U+0085 and similar characters."""
    odd = "\u2028 \u2029 \x85"
    added = {"path": "a.parquet", "size": 100, "dataChange": True}
    stats = json.dumps({"numRecords": 2, "minValues": {"_payload": odd}}, ensure_ascii=False)
    log = tmp_path / "_delta_log"
    log.mkdir()
    written = "\n".join(
        json.dumps(action, ensure_ascii=False) for action in (info(), {"add": added | {"stats": stats}})
    )
    (log / f"{0:020}.json").write_bytes(written.encode())

    assert [entry.added[0].rows for entry in read_entries(str(tmp_path), -1)] == [2]
    assert [file.path for file in read_files(str(tmp_path), 0).live] == ["a.parquet"]
    assert Ailment.LOG not in {damage.ailment for damage in find_damage(str(tmp_path), None, deep=False)}
