"""Processes that die or meet, as an operator sees them: on the command line, each with its own JVM."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.lake.log import read_entries
from tests.faults.processes import YAML, end, facts, lake_of, start
from tests.harness import TestProject

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def test_a_process_killed_between_table_and_catalog_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """L6, L10: only the table has the commit. A new process finds it, fences the dead one and continues."""
    project = TestProject.create(tmp_path, YAML)
    project.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1}, {"id": "b", "name": "x", "at": 1})

    killed, _, _ = end(start(project, "after-write:item_facts=kill"))

    assert killed == -9
    assert [
        e.metadata.node for e in read_entries(str(lake_of(project) / "item_facts"), -1) if e.metadata
    ] == ["item_facts"]
    assert not (lake_of(project) / "item").exists()
    project.lines("data/2.jsonl", {"id": "b", "name": "y", "at": 2})

    code, out, err = end(start(project))

    assert code == 0, out + err
    assert "fenced off a writer that did not end cleanly" in out
    assert facts(project) == {("a", "x"), ("b", "x"), ("b", "y")}
    assert project.rows("item", "id", "name") == {("a", "x"), ("b", "y")}
    project.assert_verified()


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[tuple[TestProject, subprocess.Popen[str]]]:
    """A run that stands still before it writes facts, until the file `go` appears."""
    project = TestProject.create(tmp_path, YAML)
    project.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1})
    process = start(project, f"before-write:item_facts=block:{tmp_path / 'go'}")
    for _ in range(600):
        if (lake_of(project) / "events" / "_delta_log" / f"{0:020}.json").exists():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    yield project, process
    if process.poll() is None:
        process.kill()
        process.communicate()


def test_a_second_process_is_told_who_holds_the_lake(
    blocked: tuple[TestProject, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A lake of plain files has one writer; the first goes on as if nothing had happened."""
    project, first = blocked

    code, _, err = end(start(project))

    assert code == 3, err
    assert "[lake-held]" in err
    assert "Starting Spark" not in err
    assert re.search(rf"process {first.pid} on \S+, since \d{{4}}-", err), err
    (tmp_path / "go").touch()
    assert end(first)[0] == 0
    assert facts(project) == {("a", "x")}
    assert project.run().results == (), "the lake is free again, and nothing waits"


def test_an_interrupted_run_ends_in_seconds_and_the_next_one_goes_on(
    blocked: tuple[TestProject, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Its task stands still in a thread that nobody can stop; the JVM ends by itself and leaves the lake."""
    project, first = blocked
    time.sleep(1)

    started = time.monotonic()
    first.send_signal(signal.SIGINT)
    code, _, err = end(first)

    assert (code, time.monotonic() - started < 5) == (130, True), err
    assert "nothing is lost; the next run continues from there" in err
    assert "Traceback" not in err
    (tmp_path / "go").touch()
    code, out, err = end(start(project))
    assert code == 0, out + err
    assert facts(project) == {("a", "x")}
    assert len([e for e in read_entries(str(lake_of(project) / "item_facts"), -1) if e.changes_rows]) == 1


def _mount(folder: Path, size: str) -> bool:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or not _mount(disk, "8m"):
        pytest.skip("a small disk can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_said_and_after_making_room_the_next_run_goes_on(
    small_disk: Path, tmp_path: Path
) -> None:
    """L13: in words, with a remedy; nothing half-written is ever read."""
    yaml = YAML.replace(
        "project: register", f"project: register\n    settings: {{lake: {small_disk / 'lake'}}}"
    )
    project = TestProject.create(tmp_path / "project", yaml)
    project.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1})
    project.run()
    project.lines("data/2.jsonl", {"id": "b", "name": "x", "at": 1}, {"id": "a", "name": "y", "at": 2})
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk)
    ballast.write_bytes(b"\0" * (free.f_bavail * free.f_frsize - 12_000))

    outcome = project.run(ok=False)

    assert outcome.exit_code == 1
    said = [r for r in outcome.results if r.error and r.slug != "blocked"]
    assert said
    assert all(
        r.slug == "disk-full" and "[disk-full]" in r.error and "Free some room" in r.error for r in said
    ), [r.error for r in said]
    ballast.unlink()
    project.run()
    assert facts(project) == {("a", "x"), ("b", "x"), ("a", "y")}
    assert project.rows("item", "id", "name") == {("a", "y"), ("b", "x")}
    project.assert_verified()
