"""`doctor` finds each problem, names the table and the remedy. It finds none in a sound lake."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.app.doctor import examine
from strandline.app.finding import Finding, Result
from strandline.catalog import acquire_lease, open_catalog
from tests.unit.cli.damaging import add_checksum, cut, flip
from tests.unit.cli.lake_builder import Written, write_lake


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_lake(tmp_path_factory.mktemp("written") / "shop")


@pytest.fixture
def lake(written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """A copy to damage."""
    monkeypatch.setattr("strandline.app.doctor.find_jars", lambda: ())
    shutil.copytree(written.folder, tmp_path / "shop")
    return Written(folder=tmp_path / "shop")


def wrong(lake: Written, *, deep: bool = False) -> list[Finding]:
    return [f for f in examine(lake.folder, deep=deep) if f.result is Result.WRONG]


def the_one(lake: Written, check: str, *, deep: bool = False) -> Finding:
    findings = wrong(lake, deep=deep)
    assert [f.check for f in findings] == [check], findings
    assert findings[0].remedy
    return findings[0]


def test_nothing_is_wrong_with_a_sound_lake(lake: Written) -> None:
    assert wrong(lake, deep=True) == []


LOG_DAMAGE: dict[str, tuple[Callable[[Written], object], str]] = {
    "truncated": (lambda lake: cut(lake.log("orders", 1)), "entry 1 of its log can't be read"),
    "emptied": (lambda lake: lake.log("orders", 1).write_text(""), "entry 1 of its log is empty"),
    "missing in the middle": (lambda lake: lake.log("orders", 1).unlink(), "entry 1 of its log is missing"),
    "missing at the start": (lambda lake: lake.log("orders", 0).unlink(), "its log begins with version 1"),
    "none left": (
        lambda lake: [
            lake.log("orders", n).rename(lake.table("orders") / "_delta_log" / f"{n}.old") for n in (0, 1, 2)
        ],
        "no entry",
    ),
}


@pytest.mark.parametrize("name", LOG_DAMAGE)
def test_a_damaged_log(lake: Written, name: str) -> None:
    damage, what = LOG_DAMAGE[name]
    lake.commit("orders")
    lake.commit("customer_totals")
    assert wrong(lake) == []

    damage(lake)

    finding = next(f for f in wrong(lake) if f.check == "log")
    assert f"`orders`: {what}" in finding.what or what in finding.what
    assert "move" in finding.remedy
    assert str(lake.table("orders")) in finding.remedy


def test_a_log_whose_end_is_gone(lake: Written) -> None:
    """Delta would open the previous version, and nobody would notice the missing rows."""
    (lake.table("orders") / "_delta_log" / f"{1:020}.crc").write_text("{}")
    lake.log("orders", 1).unlink()

    assert (
        "ends with version 0, and version 1 existed" in next(f for f in wrong(lake) if f.check == "log").what
    )


def test_an_entry_whose_bytes_changed_and_still_parse(lake: Written) -> None:
    entry = lake.log("orders", 1)
    add_checksum(entry)
    assert wrong(lake) == []

    entry.write_text(
        entry.read_text().replace('"dataChange":true', '"dataChange":True'.lower().replace("true", "null"), 1)
    )

    assert "does not have the bytes that were written" in the_one(lake, "log").what


def test_a_checkpoint_that_is_named_and_gone(lake: Written) -> None:
    table = DeltaTable(str(lake.table("orders")))
    table.create_checkpoint()
    pointer = lake.table("orders") / "_delta_log" / "_last_checkpoint"
    assert json.loads(pointer.read_text())["version"] == 1
    assert wrong(lake) == []
    for checkpoint in lake.table("orders").glob("_delta_log/*.checkpoint*parquet"):
        checkpoint.unlink()

    finding = the_one(lake, "checkpoint")

    assert "version 1, which is gone" in finding.what
    pointer.unlink()
    assert wrong(lake) == [], "the remedy it names is one"


def test_a_data_file_that_is_missing_or_of_another_size(lake: Written) -> None:
    first, second = lake.files("orders")
    first.unlink()
    cut(second)

    findings = wrong(lake)

    assert {f.check for f in findings} == {"files"}
    assert any(first.name in f.what and "is missing" in f.what for f in findings)
    assert any(second.name in f.what and "should have" in f.what for f in findings)
    assert all("computed again from its inputs" in f.remedy for f in findings)


def test_a_flipped_byte_is_found_by_the_deep_look_alone(lake: Written) -> None:
    file = lake.files("order_events")[0]
    add_checksum(file)
    flip(file)

    assert wrong(lake) == []
    finding = the_one(lake, "files", deep=True)

    assert file.name in finding.what
    assert "received again" in finding.remedy, "a source's files are read again"


def test_a_page_that_does_not_decode_is_found_without_a_checksum(lake: Written) -> None:
    file = lake.files("orders")[0]
    data = bytearray(file.read_bytes())
    data[4:40] = b"\xff" * 36
    file.write_bytes(data)

    assert file.name in the_one(lake, "files", deep=True).what


def test_files_that_a_lagging_job_has_yet_to_read(lake: Written) -> None:
    """Someone vacuumed by hand: the newest version is complete, but not the one that the job reads from."""
    lake.commit("orders")
    table = DeltaTable(str(lake.table("orders")))
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    finding = next(f for f in wrong(lake) if f.check == "history")

    assert "`orders`" in finding.what
    assert "strandline backfill customer_totals --all" in finding.remedy


def test_a_catalog_from_yesterday(lake: Written, tmp_path: Path) -> None:
    shutil.copy(lake.catalog_file, tmp_path / "yesterday.db")
    lake.commit("orders")
    lake.commit("customer_totals")
    shutil.copy(tmp_path / "yesterday.db", lake.catalog_file)

    finding = the_one(lake, "catalog-behind")

    assert "`orders`, `customer_totals`" in finding.what
    assert "rebuild-catalog" in finding.remedy
    assert lake.call("rebuild-catalog") == 0
    assert wrong(lake) == [], "the remedy it names is one"


def test_a_run_that_did_not_end_is_not_a_catalog_from_yesterday(lake: Written) -> None:
    lake.commit("orders", recorded=False)

    assert wrong(lake) == []
    assert (
        "`orders` has 1 commits of ours"
        in next(f for f in examine(lake.folder) if f.check == "unsettled").what
    )


def test_a_catalog_that_is_lost_is_not_made_by_asking(lake: Written) -> None:
    lake.catalog_file.unlink()

    finding = the_one(lake, "catalog-lost")

    assert "rebuild-catalog" in finding.remedy
    assert not lake.catalog_file.exists()


def test_another_catalog_than_the_one_that_was_used(lake: Written) -> None:
    lake.catalog_file.unlink()
    open_catalog(lake.address).close()

    finding = the_one(lake, "catalog-lost")

    assert "rebuild-catalog" in finding.remedy
    assert lake.call("rebuild-catalog") == 0
    assert wrong(lake) == []


def test_a_damaged_catalog(lake: Written) -> None:
    lake.catalog_file.write_bytes(b"no database" * 1000)

    assert "rebuild-catalog" in the_one(lake, "catalog").remedy
    lake.files("orders")[0].unlink()
    assert [f.check for f in wrong(lake)] == ["catalog", "files"], "the tables are looked at all the same"


def test_a_table_put_back_from_a_copy(lake: Written, tmp_path: Path) -> None:
    shutil.copytree(lake.table("orders"), tmp_path / "copy")
    lake.commit("orders")
    lake.commit("customer_totals")
    shutil.rmtree(lake.table("orders"))
    shutil.copytree(tmp_path / "copy", lake.table("orders"))

    finding = the_one(lake, "catalog-ahead")

    assert "it has version 2, and the table ends with 1" in finding.what


def test_a_table_deleted_and_made_again(lake: Written) -> None:
    shutil.rmtree(lake.table("orders"))
    write_deltalake(str(lake.table("orders")), pa.table({"id": [1]}))

    assert "`orders` is not the table in the catalog" in the_one(lake, "recreated").what


def test_a_table_that_is_gone(lake: Written) -> None:
    shutil.rmtree(lake.table("orders"))

    assert "`orders` is gone" in the_one(lake, "table-gone").what


def test_a_foreign_writer(lake: Written) -> None:
    write_deltalake(str(lake.table("orders")), pa.table({"id": [9], "name": ["x"]}), mode="append")

    assert "`orders` has commits that are not Strandline's: version 2" in the_one(lake, "foreign").what


def test_a_compaction_by_hand_is_nobodys_business(lake: Written) -> None:
    DeltaTable(str(lake.table("orders"))).optimize.compact()

    assert wrong(lake) == []


def test_leases_that_were_not_given_back(lake: Written) -> None:
    catalog = open_catalog(lake.address)
    acquire_lease(catalog, "orders", "host:17", 60, 0, True)
    acquire_lease(catalog, "customer_totals", "host:18", -5, 0, True)
    catalog.close()

    leases = {f.what.split("`")[1]: f for f in examine(lake.folder) if f.check == "lease"}

    assert set(leases) == {"orders", "customer_totals"}
    assert "held by host:17" in leases["orders"].what
    assert "fences" in leases["customer_totals"].remedy
    assert wrong(lake) == []


def test_a_locked_catalog(lake: Written) -> None:
    other = sqlite3.connect(lake.catalog_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    finding = the_one(lake, "catalog")

    other.execute("ROLLBACK")
    other.close()
    assert "locked" in finding.what
    assert wrong(lake) == []


def test_a_postgres_that_does_not_answer(lake: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_CATALOG", "postgresql+psycopg://me:secret@127.0.0.1:1/none")

    finding = the_one(lake, "catalog")

    assert "Check that Postgres runs" in finding.remedy
    assert "secret" not in finding.what


def test_a_disk_that_is_full(lake: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.app.doctor.LITTLE_ROOM", 1 << 60)

    assert "Free some space" in the_one(lake, "disk").remedy


def test_it_ends_with_1_and_prints_what_and_remedy(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert lake.call("doctor", "--deep") == 0
    lake.files("orders")[0].unlink()

    assert lake.call("doctor") == 1

    out = capsys.readouterr().out
    assert "is missing" in out
    assert "1 thing needs action." in out
