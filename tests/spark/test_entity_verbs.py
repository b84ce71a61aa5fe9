"""Every verb knows entities: one of them is stale in a variable, and another variable waits for its input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.cli import main
from tests.harness import TestProject
from tests.spark.test_entity_configuration import DAY, YAML, item, track

pytestmark = pytest.mark.spark

SIZES = """
      size:
        id: {live: bigint}
        variables:
          rooms: {from: busy, select: "count(*)"}
"""
EDITED = YAML.replace("last: 7 days", "last: 30 days").replace("    jobs:\n", f"{SIZES[1:]}    jobs:\n")
BEFORE = "2024-03-10T00:00:00Z"

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def project(tmp_path: Path) -> TestProject:
    """Two runs. For the second `sent` has another window, and there is an entity of a job's output."""
    made = TestProject.create(tmp_path / "rooms", YAML)
    made.lines("i/1.jsonl", item("1", "x", "01"), item("2", "x", "01", "b"), item("3", "y", "01"))
    made.lines("t/1.jsonl", track("x", "03-08"), track("x", "02-20"), track("y", "03-09"))
    made.run(DAY)
    made.declare(EDITED)
    made.lines("i/2.jsonl", item("4", "y", "02"))
    made.run(DAY)
    return made


@pytest.fixture
def ask(project: TestProject, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Call a verb; returns its JSON."""

    def call(*words: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        answered = main([*words, "--project", str(project.folder), "--output", "json"])
        said = capsys.readouterr()
        assert answered == code, said.err + said.out
        result: dict[str, Any] = json.loads(said.out)
        return result

    return call


def rooms(project: TestProject) -> set[tuple[Any, ...]]:
    return project.rows("room", "room", "live", "sent", "pace")


def read_status(ask: Ask, name: str) -> tuple[str, list[tuple[str, str]]]:
    """Why a dataset is not fresh, and what is held of it. The clock of `status` is the time of the call."""
    told = ask("status", name)
    (found,) = told["datasets"]
    return found["reason"], [(h["state"], h["reason"]) for h in told["held"] if h["node"] == name]


def test_every_verb_knows_an_entity(project: TestProject, ask: Ask) -> None:
    status, held = read_status(ask, "room"), {("x", 2, 1, 3), ("y", 2, 1, 2)}
    assert rooms(project) == held
    assert project.rows("size") == {(2, 2)}
    assert status[1] == [("stale", "`variable sent`, `variable pace` changed")]
    assert "`variable tickets` of room waits for `tickets`, which was never received." in status[0]
    told = {v["variable"]: v for v in ask("explain", "room")["nodes"][0]["variables"]}
    assert [name for name, v in told.items() if not v["written"]] == ["sent", "pace", "tickets"]
    (verified,) = ask("verify", "room")["datasets"]
    assert (verified["result"], verified["differing_rows"], verified["stale_rows"]) == ("stale", 0, 2)

    # The tables say everything that the catalog knew.
    ask("rebuild-catalog")
    assert read_status(ask, "room") == status
    planned = [t["node"] for t in ask("plan", "--as-of", BEFORE)["tasks"]]
    assert planned == [
        "items_quarantine",
        "tracks_quarantine",
    ]  # they have no table, so nothing tells of them
    assert all(finding["result"] != "failed" for finding in ask("doctor")["findings"])
    ask("maintain", "room")
    assert rooms(project) == held

    # An invalidated row has its entity computed again. A stale column stays.
    ask("invalidate", "items", "--where", "room = 'x'", "--reason", "checked")
    tasks = {t["node"]: t for t in ask("run", "--as-of", BEFORE)["tasks"]}
    assert (tasks["room"]["cause"], tasks["room"]["rows_written"]) == ("invalidation", 0)

    # A backfill of some rows uses what is published, at another time too.
    part = ask("backfill", "room", "--where", "room = 'x'", "--as-of", "2024-03-20T00:00:00Z")["tasks"]
    assert [(t["node"], t["cause"], t["strategy"]) for t in part][:1] == [("room", "person", "recompute")]
    assert rooms(project) == held

    # One of what is stale fills it alone.
    tasks = {t["node"]: t for t in ask("backfill", "room", "--stale", "--as-of", BEFORE)["tasks"]}
    assert (tasks["room"]["strategy"], tasks["room"]["rows_read"]) == ("recompute", 3)
    assert rooms(project) == {("x", 2, 2, 4), ("y", 2, 1, 3)}
    assert read_status(ask, "room")[1] == []
    assert ask("verify")["datasets"]

    ask("backfill", "room", "--all", "--as-of", "2024-04-08T00:00:00Z")
    assert rooms(project) == {("x", 2, 0, 2), ("y", 2, 1, 3)}
    project.assert_verified("room", "busy", "size")
