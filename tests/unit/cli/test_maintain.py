"""`maintain` without Spark: what it would do, and when it has nothing to do."""

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from strandline.app.clock import now
from strandline.app.planning import RunRequest
from strandline.app.run import make_desk, no_session
from strandline.app.workspace import open_workspace
from strandline.dispatch.maintain import keep_since, measure
from strandline.model.maintained import Maintained
from strandline.model.plan import Plan
from tests.unit.cli.builders import no_spark, printed
from tests.unit.cli.lake_builder import KINDS, Written, write_lake


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Every table is one file, after a compaction of everything that jobs have read."""
    lake = write_lake(tmp_path_factory.mktemp("written") / "shop")
    for dataset in KINDS:
        DeltaTable(str(lake.table(dataset))).optimize.compact()
    return lake


@pytest.fixture
def lake(written: Written, tmp_path: Path) -> Written:
    shutil.copytree(written.folder, tmp_path / "shop")
    return Written(folder=tmp_path / "shop")


def look(lake: Written, dataset: str, keep: timedelta) -> tuple[Maintained, bool]:
    with open_workspace(lake.folder) as workspace:
        desk = make_desk(
            workspace, workspace.observe(), Plan(as_of=now(), tasks=()), "run", no_session, RunRequest()
        )
        return measure(desk, workspace.project.get(dataset), keep_since(now(), keep))


def test_with_nothing_to_do_it_starts_no_spark_and_says_what_is_kept_and_why(
    lake: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with no_spark(monkeypatch):
        assert lake.call("maintain", "--output", "json") == 0

    tables = {t["dataset"]: t for t in printed(capsys)["tables"]}
    assert tables.keys() == KINDS.keys()
    for table in tables.values():
        assert (table["files_before"], table["files_after"], table["removed_files"], table["error"]) == (
            1,
            1,
            0,
            "",
        )
        assert table["kept_files"] == 2
        assert table["kept_bytes"] > 0
        assert table["kept_because"] == "everything of the last 30 days is kept (`settings.keep`)"


def test_a_reader_needs_the_table_as_it_was_where_its_cursor_stands(lake: Written) -> None:
    """`customer_totals` has read `orders` up to version 1.

    The next compaction removed the files of that version.
    """
    outcome, to_do = look(lake, "orders", timedelta(0))

    assert not to_do
    assert outcome.kept_because == "`customer_totals` has read it up to version 1"


def test_what_nobody_reads_on_from_may_go(lake: Written) -> None:
    _, to_do = look(lake, "customer_totals", timedelta(0))

    assert to_do
    assert not look(lake, "customer_totals", timedelta(hours=1))[1]


def test_while_the_catalog_does_not_know_a_reader_nothing_goes(lake: Written) -> None:
    """Its own table says how far it has read, and nobody has looked at it yet (L6)."""
    lake.catalog_file.unlink()

    outcome, to_do = look(lake, "orders", timedelta(0))

    assert not to_do
    assert outcome.kept_because == "the catalog does not know how far `customer_totals` has read it"


def test_a_file_that_no_version_names_goes_once_it_is_older_than_what_is_kept(lake: Written) -> None:
    left = lake.table("orders") / "part-left-by-a-dead-run.parquet"
    left.write_bytes(b"x" * 100)
    assert not look(lake, "orders", timedelta(days=30))[1]

    month_ago = time.time() - 31 * 86_400
    os.utime(left, (month_ago, month_ago))

    assert look(lake, "orders", timedelta(days=30))[1]


def test_an_unknown_name_is_an_error(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert lake.call("maintain", "oders") == 2
    assert "Did you mean `orders`?" in capsys.readouterr().err


def test_a_table_for_people(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert lake.call("maintain", "orders") == 0

    out = capsys.readouterr().out
    assert "1 -> 1" in out
    assert "2 files" in out


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    lake: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two small files in each table again, and an old file that no version names."""
    for dataset in KINDS:
        lake.commit(dataset)
    left = lake.table("orders") / "part-left-by-a-dead-run.parquet"
    left.write_bytes(b"x" * 100)
    month_ago = time.time() - 31 * 86_400
    os.utime(left, (month_ago, month_ago))
    before = {
        p: p.stat().st_mtime_ns for p in lake.folder.rglob("*") if p.is_file() and "catalog" not in p.name
    }

    with no_spark(monkeypatch):
        assert lake.call("maintain", "--dry-run", "--output", "json") == 0
        document = printed(capsys)
        assert lake.call("maintain", "--dry-run") == 0

    tables = {t["dataset"]: t for t in document["tables"]}
    assert document["dry_run"] is True
    assert {name: t["notes"] for name, t in tables.items()} == {
        name: ["2 files into fewer"] for name in KINDS
    }
    assert (tables["orders"]["removed_files"], tables["orders"]["freed_bytes"]) == (1, 100)
    assert (tables["order_events"]["removed_files"], tables["order_events"]["kept_files"]) == (0, 2)
    assert "Nothing was changed" in capsys.readouterr().out
    assert {
        p: p.stat().st_mtime_ns for p in lake.folder.rglob("*") if p.is_file() and "catalog" not in p.name
    } == before
