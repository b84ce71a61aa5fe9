"""A real SIGKILL at every point: each process starts where the previous one died, and dies at the next."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.dispatch.failpoints import POINTS

from .faulty import YAML, Faulty, message
from .processes import all_faults
from .test_protocol import ROUNDS, SURVIVED

pytestmark = [pytest.mark.spark, pytest.mark.faults, all_faults]

PROGRAM = """
import os
import sys
from datetime import UTC, datetime, timedelta
from strandline.app import maintain as maintaining
from strandline.cli import main

os.environ["STRANDLINE_THRESHOLDS"] = "named_keys=0"
maintaining.now = lambda: datetime.now(UTC) + timedelta(days=1000)
sys.exit(main(sys.argv[1:]))
"""
"""The command line, as if many keys changed and nothing were kept for its age.

With many keys, one that vanishes is buried and purged later.
"""
MAINTAINED = (
    "before-compact:item_facts",
    "after-compact:item_facts",
    "before-vacuum:item_facts",
    "after-vacuum:item_facts",
)
REBUILT = ("before-rebuild", "before-swap", "after-swap")
MIGRATED = ("before-migrate", "after-migrate")
KILLS = (
    *(("run", point) for point in (*ROUNDS, "after-write:item_facts", *SURVIVED)),
    *(("maintain", point) for point in MAINTAINED),
    *(("rebuild-catalog", point) for point in REBUILT),
    *(("run", point) for point in MIGRATED),
)


def call(project: Faulty, verb: str, fail: str = "") -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "STRANDLINE_FAILPOINTS": fail}
    command = [sys.executable, "-c", PROGRAM, verb, "--project", str(project.folder)]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=180)


def test_a_process_killed_at_any_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """L6, L7, L10: after its first run, from the first point to the last, no process ends cleanly."""
    project = Faulty(Faulty.create(tmp_path / "project", YAML).folder)
    (project.folder / "data").mkdir()
    project.send(message("mover", 0, "place"))
    assert call(project, "run").returncode == 0

    for nth, (verb, point) in enumerate(KILLS, 1):
        if verb == "run":  # `mover` leaves a key behind: a purge
            project.send(message(f"m{nth}", nth, f"n{nth % 3}"), message("mover", nth, f"place{nth}"))
        if point in MIGRATED:
            for file in (project.folder / ".strandline").glob("catalog.db*"):
                file.unlink()
        ended = call(project, verb, f"{point}=kill")
        assert ended.returncode == -9, (verb, point, ended.stdout, ended.stderr)
        facts = project.query("select _source_position from item_facts")
        assert len(facts) == len({str(f) for f in facts}), f"{point} doubled a fact"

    project.send(message("mover", 100, "home"))
    ended = call(project, "run")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    project.assert_right()
    assert project.query("select count(*) from names where name like 'place%'") == [(0,)]
    assert {point.partition(":")[0] for _, point in KILLS} == set(POINTS)
