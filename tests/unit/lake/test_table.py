"""A table is opened once and moved on; its log is listed once. What others did to it is still seen."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.lake import log, table
from strandline.lake.log import Log
from strandline.lake.table import get_table, open_table
from strandline.model.errors import OutsideError
from tests.counting import count_calls


def append(uri: str, *numbers: int) -> None:
    write_deltalake(uri, pa.table({"n": pa.array(numbers, pa.int64())}), mode="append")


def numbers(opened: table.Table) -> list[int]:
    return sorted(opened.ask("SELECT n FROM t").column("n").to_pylist())


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "numbers")


def test_a_log_that_grows_is_listed_once(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = count_calls(monkeypatch, log, "list_log")
    append(uri, 1)
    seen = Log(uri)
    assert seen.versions() == [0]

    for number in range(5):
        append(uri, number)
    append(uri, 9)

    assert seen.versions() == [0, 1, 2, 3, 4, 5, 6]
    assert [e.version for e in seen.entries(4)] == [5, 6]
    assert listed == {(uri,): 1}


def test_a_log_that_is_not_there_yet_is_found_when_it_is(uri: str) -> None:
    seen = Log(uri)
    assert seen.versions() == []

    append(uri, 1)

    assert seen.versions() == [0]


def test_a_log_that_was_deleted_and_made_again_is_listed_again(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    seen = Log(uri)
    assert [sum(f.rows for f in e.added) for e in seen.entries(-1)] == [1, 1]

    shutil.rmtree(uri)
    assert seen.versions() == []
    append(uri, 1, 2, 3)

    assert [sum(f.rows for f in e.added) for e in seen.entries(-1)] == [3]


def test_a_log_whose_beginning_was_cleaned_away_says_so(uri: str) -> None:
    for number in range(3):
        append(uri, number)
    seen = Log(uri)
    assert seen.versions() == [0, 1, 2]

    DeltaTable(uri).create_checkpoint()
    (Path(uri) / "_delta_log" / f"{0:020}.json").unlink()

    assert seen.versions() == [1, 2]


def test_an_entry_that_a_listing_lacks_is_found(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is listed while two entries are written may show only the later one."""
    for number in range(4):
        append(uri, number)
    really = log.list_log
    monkeypatch.setattr(log, "list_log", lambda at: [i for i in really(at) if "002.json" not in i.path])

    seen = Log(uri)

    assert seen.versions() == [0, 1, 2, 3]
    assert [e.version for e in seen.entries(1)] == [2, 3]


def test_a_listing_with_finer_times_than_those_of_single_files_is_made_once(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 and its likes give whole seconds for one file, and some of them milliseconds in a listing."""
    really = log.list_log

    def list_finely(at: str) -> list[pa.fs.FileInfo]:
        return [
            pa.fs.FileInfo(i.path, i.type, size=i.size, mtime_ns=(i.mtime_ns or 0) + 7) for i in really(at)
        ]

    monkeypatch.setattr(log, "list_log", list_finely)
    for number in range(3):
        append(uri, number)
    seen = Log(uri)
    assert seen.newest() == (1, 2)

    append(uri, 3)

    assert seen.newest() == (1, 3)
    assert [e.version for e in seen.entries(-1)] == [0, 1, 2, 3]


def test_a_version_that_is_really_missing_stays_missing(uri: str) -> None:
    for number in range(4):
        append(uri, number)
    (Path(uri) / "_delta_log" / f"{2:020}.json").unlink()

    assert Log(uri).versions() == [0, 1, 3]


def test_a_table_is_moved_on_and_an_older_view_of_it_stays_what_it_was(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = count_calls(monkeypatch, table, "open_delta")
    append(uri, 1)
    first = get_table(uri)
    append(uri, 2)
    second = get_table(uri)

    assert opened == {(uri, None): 1}
    assert second.version == 1
    assert numbers(second) == [1, 2]
    assert (second.rows, second.file_count) == (2, 2)
    assert get_table(uri) is second
    assert get_table(uri, 1) is second
    assert (first.version, first.rows, numbers(first)) == (0, 1, [1])
    assert opened == {(uri, None): 1, (uri, 0): 1}


def test_a_table_moved_on_over_many_commits_is_the_table_opened_anew(uri: str) -> None:
    append(uri, 0)
    get_table(uri)
    for number in range(1, 15):
        append(uri, number)
        if number == 7:
            DeltaTable(uri).optimize.compact()
        if number == 9:
            DeltaTable(uri).create_checkpoint()
        if number == 11:
            DeltaTable(uri).delete("n = 3")
        get_table(uri)

    moved, anew = get_table(uri), DeltaTable(uri)

    assert moved.version == anew.version()
    assert sorted(moved.paths) == sorted(pa.table(anew.get_add_actions(flatten=True))["path"].to_pylist())
    assert numbers(moved) == [n for n in range(15) if n != 3]


def test_a_table_made_again_is_seen_although_its_log_was_forgotten(uri: str) -> None:
    """The logs that a process keeps are limited: one that is listed anew starts to count again."""
    append(uri, 1)
    append(uri, 2)
    assert numbers(get_table(uri)) == [1, 2]
    log.find_log.cache_clear()

    shutil.rmtree(uri)
    append(uri, 3)
    append(uri, 4)

    assert numbers(get_table(uri)) == [3, 4]


def test_an_earlier_version_is_opened_once(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = count_calls(monkeypatch, table, "open_delta")
    append(uri, 1)
    append(uri, 2)

    assert get_table(uri, 0) is get_table(uri, 0)
    assert opened == {(uri, 0): 1}


def test_a_table_deleted_and_made_again_is_not_the_one_that_was_opened(uri: str) -> None:
    append(uri, 1)
    before = get_table(uri)
    shutil.rmtree(uri)

    assert open_table(uri) is None

    append(uri, 7)

    again = get_table(uri)
    assert again.id != before.id
    assert numbers(again) == [7]


def test_an_older_view_of_a_table_that_was_made_again_is_refused(uri: str) -> None:
    append(uri, 1)
    before = get_table(uri)
    append(uri, 2)
    get_table(uri)
    shutil.rmtree(uri)
    append(uri, 7)

    with pytest.raises(OutsideError) as refused:
        numbers(before)

    assert refused.value.slug == "table-replaced"
