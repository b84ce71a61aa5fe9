"""`rebuild-catalog` restores a lost catalog from the tables. If it dies on the way, the old one stays."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.catalog import (
    acquire_lease,
    list_leases,
    open_catalog,
    read_invalidations,
    read_runs,
    read_view,
    start_run,
)
from strandline.dispatch.failpoints import FailpointError
from strandline.lake.lock import LOCK_FILE
from tests.unit.cli.builders import printed
from tests.unit.cli.lake_builder import KINDS, Written, write_lake


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_lake(tmp_path_factory.mktemp("written") / "shop")


@pytest.fixture
def lake(written: Written, tmp_path: Path) -> Written:
    """A copy to damage. Its catalog contains addresses of the original, which comparisons leave out."""
    shutil.copytree(written.folder, tmp_path / "shop")
    return Written(folder=tmp_path / "shop")


def promised(lake: Written) -> dict[str, Any]:
    """The promises of L6: cursors, positions, partition versions, and invalidations with their readers."""
    catalog = open_catalog(lake.address)
    nodes = {
        name: (
            record.kind,
            record.table_id,
            record.table_version,
            record.configs,
            record.as_of,
            record.row_count,
            record.counts,
            record.cursors,
            record.files,
            {
                key: (p.version, p.config_hash, p.row_count, p.bytes, p.table_version)
                for key, p in record.partitions.items()
            },
            record.waiting,
        )
        for name, record in read_view(catalog).nodes.items()
    }
    recorded, owed = read_invalidations(catalog, list(KINDS))
    catalog.close()
    invalidations = [{k: v for k, v in row.items() if k != "processed_at"} for row in recorded]
    return {
        "nodes": nodes,
        "invalidations": invalidations,
        "processed": [(row["job"], row["processed_at"] is not None) for row in owed],
    }


def test_it_equals_the_lost_one(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """L6."""
    before = promised(lake)
    assert before["invalidations"]
    assert before["processed"] == [("customer_totals", True)]
    lake.catalog_file.unlink()

    assert lake.call("rebuild-catalog", "--output", "json") == 0

    document = printed(capsys)
    assert {t["dataset"]: t["table_version"] for t in document["tables"]} == dict.fromkeys(KINDS, 1)
    assert promised(lake) == before


def test_one_from_yesterday_is_brought_up_to_date_and_keeps_what_the_tables_do_not_tell(
    lake: Written, tmp_path: Path
) -> None:
    catalog = open_catalog(lake.address)
    start_run(catalog, "run-1", "2024-01-01", "person")
    catalog.close()
    shutil.copy(lake.catalog_file, tmp_path / "yesterday.db")
    for dataset in KINDS:
        lake.commit(dataset)
    today = promised(lake)
    shutil.copy(tmp_path / "yesterday.db", lake.catalog_file)
    assert promised(lake) != today

    rebuild_catalog(lake.folder)

    assert promised(lake) == today
    catalog = open_catalog(lake.address)
    assert [run.run for run in read_runs(catalog, 5)] == ["run-1"]
    assert all(acquire_lease(catalog, n, "next", 60, 3, False).must_fence for n in KINDS), (
        "nobody knows who wrote last"
    )
    catalog.close()


@pytest.mark.parametrize("damage", ["overwritten", "cut", "empty", "a page"])
def test_a_damaged_one_is_laid_aside(lake: Written, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = promised(lake)
    data = lake.catalog_file.read_bytes()
    texts = {
        "overwritten": b"this is no database" * 1000,
        "cut": data[: len(data) // 2],
        "empty": b"",
        "a page": data[:4096] + b"\xff" * 8192 + data[12288:],
    }
    lake.catalog_file.write_bytes(texts[damage])

    assert lake.call("rebuild-catalog") == 0

    assert promised(lake) == before
    kept = lake.catalog_file.with_name("catalog.db.damaged")
    assert kept.read_bytes() == texts[damage]
    assert str(kept) in capsys.readouterr().out
    assert not list(lake.catalog_file.parent.glob("*.rebuilt*"))
    catalog = open_catalog(lake.address)
    assert list_leases(catalog) == (), "the next holder of each table fences"
    catalog.close()


def test_a_catalog_that_cannot_be_used_is_settled_as_the_message_says(
    lake: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.catalog_file.write_bytes(b"this is no database" * 1000)

    refused = lake.call("status")

    why = capsys.readouterr().err
    assert refused == 3
    assert "Run `strandline rebuild-catalog`: it moves the file aside.  [catalog-unreachable]" in why
    assert lake.call("rebuild-catalog") == 0
    assert lake.call("status") == 0


@pytest.mark.parametrize("point", ["before-rebuild", "before-swap", "after-swap"])
def test_who_dies_on_the_way_leaves_a_catalog_that_can_be_used(
    lake: Written, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = promised(lake)
    lake.commit("order_events", recorded=False)
    monkeypatch.setenv("STRANDLINE_FAILPOINTS", f"{point}=raise")

    with pytest.raises(FailpointError):
        rebuild_catalog(lake.folder)

    after = promised(lake)
    monkeypatch.delenv("STRANDLINE_FAILPOINTS")
    rebuild_catalog(lake.folder)
    assert promised(lake)["nodes"]["order_events"][2] == 2
    assert after == (promised(lake) if point == "after-swap" else before)


def test_a_process_killed_in_the_swap_leaves_the_old_one(lake: Written) -> None:
    before = promised(lake)
    lake.commit("order_events", recorded=False)
    command = [sys.executable, "-m", "strandline.cli", "rebuild-catalog", "--project", str(lake.folder)]

    killed = subprocess.run(
        command, env={**os.environ, "STRANDLINE_FAILPOINTS": "before-swap=kill"}, capture_output=True
    )

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert promised(lake) == before


@contextmanager
def another_writer(lake: Written) -> Iterator[None]:
    """A process that holds the lake's lock."""
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'a+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(lake.table(LOCK_FILE))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate()


def test_it_refuses_while_the_lake_is_written(
    lake: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lake.catalog_file.read_bytes()
    monkeypatch.setattr("strandline.lake.lock._PATIENCE", 0)

    with another_writer(lake):
        code = lake.call("rebuild-catalog")

    assert code == 3
    assert "[lake-held]" in capsys.readouterr().err
    assert lake.catalog_file.read_bytes() == before
    assert lake.call("rebuild-catalog") == 0, "and not any more once it has ended"


def test_nobody_writes_the_lake_meanwhile(lake: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def try_to_write(*_: object) -> None:
        code = (
            f"import fcntl; fcntl.lockf(open({str(lake.table(LOCK_FILE))!r}, 'a+b'), "
            "fcntl.LOCK_EX | fcntl.LOCK_NB)"
        )
        exit_codes.append(subprocess.run([sys.executable, "-c", code], capture_output=True).returncode)

    exit_codes: list[int] = []
    monkeypatch.setattr("strandline.app.rebuild_catalog.rebuild", try_to_write)

    rebuild_catalog(lake.folder)

    assert exit_codes == [1]
