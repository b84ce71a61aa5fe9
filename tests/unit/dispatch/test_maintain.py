"""The decisions of maintenance: versions to keep, files that nobody needs, and files to merge."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strandline.dispatch.horizon import find_horizon
from strandline.dispatch.maintain import keep_since
from strandline.lake.compaction import ROWS_A_FILE, Step, find_compactions
from strandline.lake.files import LiveFile, StoredFile, find_dead, list_stored, read_files, remove_files
from strandline.lake.log import LogEntry, parse_entry
from strandline.model.commits import CommitMetadata, CommitSummary, Operation, TableState
from strandline.model.metadata import find_metadata, to_json
from strandline.model.plan import Cursor

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "h!j(SGIt0MTNT@qoO*m4",
    "offset": 1,
    "sizeInBytes": 60,
    "cardinality": 6,
}
VECTOR_FILE = "deletion_vector_3764380d-844d-486b-acf1-d8a24c88b9ca.bin"


def entry(version: int, at: datetime) -> LogEntry:
    return parse_entry(
        version, json.dumps({"commitInfo": {"operation": "WRITE", "timestamp": int(at.timestamp() * 1000)}})
    )


HISTORY = [entry(version, NOON - timedelta(days=40 - 10 * version)) for version in range(5)]
"""Versions 0 to 4, forty days ago to now."""


@pytest.mark.parametrize(
    ("cursors", "days", "version", "because"),
    [
        ({}, 30, 1, "last 30 days"),
        ({}, 29, 1, "last 29 days"),
        ({}, 100, 0, "last 100 days"),
        ({"names": 4, "totals": 3}, 30, 1, "last 30 days"),
        ({"names": 4, "totals": 0}, 30, 0, "`totals` has read it up to version 0"),
        ({"names": 2}, 1, 2, "`names` has read it up to version 2"),
    ],
)
def test_a_table_stays_readable_from_the_oldest_thing_that_is_needed(
    cursors: dict[str, int], days: int, version: int, because: str
) -> None:
    """The version that was newest when `keep` began may be read with --known-at.

    A cursor continues from its version.
    """
    keeping = keep_since(NOON, timedelta(days=days))

    horizon = find_horizon(HISTORY, cursors, keeping.since, keeping.text)

    assert horizon.version == version
    assert because in horizon.because


def write_log(folder: Path, *commits: list[dict[str, object]]) -> str:
    (folder / "_delta_log").mkdir()
    for version, actions in enumerate(commits):
        (folder / "_delta_log" / f"{version:020}.json").write_text(
            "".join(json.dumps(a) + "\n" for a in actions)
        )
    return str(folder)


def add(path: str, vector: dict[str, object] | None = None, rows: int = 10) -> dict[str, object]:
    more = {"deletionVector": vector} if vector else {}
    return {
        "add": {
            "path": path,
            "size": 100,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows}),
            **more,
        }
    }


def remove(path: str, vector: dict[str, object] | None = None) -> dict[str, object]:
    return {"remove": {"path": path, "dataChange": True, **({"deletionVector": vector} if vector else {})}}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Commits: add a and b; delete rows of b; merge a and b into c, with a file of changes; add d."""
    return write_log(
        tmp_path,
        [add("a%20a.parquet"), add("b.parquet")],
        [add("b.parquet", VECTOR), remove("b.parquet")],
        [
            remove("a%20a.parquet"),
            remove("b.parquet", VECTOR),
            add("c.parquet"),
            {"cdc": {"path": "_change_data/x.parquet", "size": 5}},
        ],
        [add("d.parquet")],
    )


ALL = {"a a.parquet", "b.parquet", VECTOR_FILE, "c.parquet", "_change_data/x.parquet", "d.parquet"}


@pytest.mark.parametrize(
    ("since", "unneeded"),
    [
        (0, set()),
        (1, set()),
        (2, {"a a.parquet", "b.parquet", VECTOR_FILE, "_change_data/x.parquet"}),
        (-1, set()),
    ],
)
def test_a_version_needs_its_files_and_those_its_changes_are_read_from(
    table: str, since: int, unneeded: set[str]
) -> None:
    """Readers from version 1 on need the files of version 1, to compare both states.

    They also need everything that version 2 removed and added.
    """
    files = read_files(table, since)

    assert files.named - files.needed == unneeded
    assert files.named == ALL
    assert {f.path for f in files.live} == {"c.parquet", "d.parquet"}
    assert files.complete


def test_a_file_with_a_deletion_vector_is_live_once_whatever_the_order_within_the_commit(
    tmp_path: Path,
) -> None:
    table = write_log(tmp_path, [add("b.parquet")], [add("b.parquet", VECTOR), remove("b.parquet")])

    (file,) = read_files(table, 0).live

    assert (file.path, file.rows, file.deleted, file.vector) == ("b.parquet", 10, 6, VECTOR_FILE)


def test_a_log_that_was_cut_is_not_trusted_with_removing(table: str, tmp_path: Path) -> None:
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    assert not read_files(table, 1).complete


def test_what_no_version_named_goes_only_when_nobody_can_be_writing_it_any_more(table: str) -> None:
    files = read_files(table, 2)
    stored = [
        StoredFile(path=path, bytes=1, modified_at=NOON - timedelta(days=days))
        for path, days in (
            ("d.parquet", 90),
            ("b.parquet", 0),
            ("left-over.parquet", 31),
            ("being-written.parquet", 1),
        )
    ]

    dead = find_dead(files, stored, NOON - timedelta(days=30))

    assert [f.path for f in dead] == ["b.parquet", "left-over.parquet"]


def test_the_log_and_what_is_hidden_are_never_listed_and_a_checksum_goes_with_its_file(
    tmp_path: Path,
) -> None:
    for path in (
        "_delta_log/0.json",
        "_change_data/x.parquet",
        "a.parquet",
        ".a.parquet.crc",
        "_tmp/y.parquet",
        "day=1/b.parquet",
        "_deleted=false/_role=row/c.parquet",
        "_deleted=false/_role=row/.c.parquet.crc",
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text("text")

    stored = list_stored(str(tmp_path))

    assert [f.path for f in stored] == [
        "_change_data/x.parquet",
        "_deleted=false/_role=row/c.parquet",
        "a.parquet",
        "day=1/b.parquet",
    ]
    remove_files(str(tmp_path), [f for f in stored if f.path[-9:] in ("a.parquet", "c.parquet")] * 2)
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"_delta_log/0.json", "_change_data/x.parquet", "_tmp/y.parquet", "day=1/b.parquet"}


def live(rows: int, deleted: int = 0, role: str = "row") -> LiveFile:
    return LiveFile(
        path=f"{rows}-{deleted}", bytes=rows * 20, rows=rows, deleted=deleted, partition=(("_role", role),)
    )


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        ([], []),
        ([live(10)], []),
        ([live(10), live(20)], [Step.MERGE]),
        ([live(ROWS_A_FILE), live(ROWS_A_FILE), live(10)], []),
        ([live(ROWS_A_FILE), live(10), live(10)], [Step.MERGE]),
        ([live(140_000), live(140_000), live(140_000)], []),
        ([live(1000, 200)], []),
        ([live(1000, 201)], [Step.PURGE]),
        ([live(1000, 900), live(5)], [Step.PURGE, Step.MERGE]),
        ([live(10), live(10, role="head"), live(10, role="epoch")], []),
        ([live(10), live(10, role="head"), live(10, role="head")], [Step.MERGE]),
    ],
)
def test_a_table_is_written_again_only_where_it_gains(files: list[LiveFile], steps: list[Step]) -> None:
    """Merging at least halves the number of small files of a partition.

    A file with many deleted rows is written without them.
    """
    assert [c.step for c in find_compactions(files)] == steps


def announcement(readable_from: int) -> CommitMetadata:
    bare = CommitMetadata.bare(run="r", node="item", token=7, operation=Operation.CLEAN, as_of="")
    return replace(bare, inputs={"item": Cursor(table_id="t", version=1)}, readable_from=readable_from)


def test_a_table_tells_from_which_version_on_it_can_be_read() -> None:
    """The announcement is in the commit's metadata, so it survives the loss of the catalog (L6)."""
    metadata = find_metadata(to_json(announcement(5)))
    assert metadata == announcement(5)
    quiet = CommitSummary(
        version=9, changes_rows=False, rows_added=0, bytes_added=0, metadata=metadata, operation="WRITE"
    )

    state = TableState(dataset="item", table_id="t", version=9, rows=0, bytes=0, commits=(quiet,))

    assert state.readable_from == 5
    assert TableState(dataset="item", table_id="t", version=9, rows=0, bytes=0, commits=()).readable_from == 0
