"""Processes that die or meet, as an operator sees them: on the command line, each with its own JVM."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.cli import main
from strandline.lake.log import read_entries
from tests.faults.processes import YAML, end, facts, held_at, lake_of, start, wait_until
from tests.harness import TestProject

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def test_a_process_killed_between_table_and_catalog_loses_and_doubles_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """L6, L10: only the table has the commit. Another process finds it, fences the dead one and continues."""
    project = TestProject.create(tmp_path, YAML)
    project.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1}, {"id": "b", "name": "x", "at": 1})

    killed, _, _ = end(start(project, "after-write:item_facts=kill"))

    assert killed == -9
    assert [
        e.metadata.node for e in read_entries(str(lake_of(project) / "item_facts"), -1) if e.metadata
    ] == ["item_facts"]
    assert not (lake_of(project) / "item").exists()
    project.lines("data/2.jsonl", {"id": "b", "name": "y", "at": 2})

    code = main(["run", "--project", str(project.folder)])

    out, err = capsys.readouterr()
    assert code == 0, out + err
    assert "fenced off a writer that did not end cleanly" in out
    assert facts(project) == {("a", "x"), ("b", "x"), ("b", "y")}
    assert project.rows("item", "id", "name") == {("a", "x"), ("b", "y")}
    project.assert_verified()


@dataclass(frozen=True)
class Interrupted:
    """A project whose first run was interrupted, and how that run ended."""

    project: TestProject
    code: int
    seconds: float
    err: str


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interrupted]:
    """Its task stands still in a thread that nobody can stop."""
    project = TestProject.create(tmp_path_factory.mktemp("interrupted") / "project", YAML)
    project.lines("data/1.jsonl", {"id": "a", "name": "x", "at": 1})
    process = start(project, f"before-write:item_facts=block:{project.folder / 'never'}")
    try:
        received = lake_of(project) / "events" / "_delta_log" / f"{0:020}.json"
        wait_until(lambda: received.exists() or process.poll() is not None, "a run that has received a file")
        time.sleep(1)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        code, _, err = end(process)
        yield Interrupted(project=project, code=code, seconds=time.monotonic() - started, err=err)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_an_interrupted_run_ends_in_seconds(interrupted: Interrupted) -> None:
    assert (interrupted.code, interrupted.seconds < 5) == (130, True), interrupted.err
    assert "nothing is lost; the next run continues from there" in interrupted.err
    assert "Traceback" not in interrupted.err


def test_a_second_process_is_told_who_holds_the_lake(interrupted: Interrupted) -> None:
    """A lake of plain files has one writer; the first goes on as if nothing had happened.

    The first goes on after an interrupted run, whose JVM ended by itself and left the lake.
    """
    project = interrupted.project
    with held_at(project, "before-write:item_facts") as first:
        code, _, err = end(start(project))

        assert code == 3, err
        assert "[lake-held]" in err
        assert "Starting Spark" not in err
        assert re.search(rf"process {first.process.pid} on \S+, since \d{{4}}-", err), err
        first.let_go()
        code, out, err = end(first.process)

    assert code == 0, out + err
    assert facts(project) == {("a", "x")}
    assert len([e for e in read_entries(str(lake_of(project) / "item_facts"), -1) if e.changes_rows]) == 1
    assert project.run().results == (), "the lake is free again, and nothing waits"


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
