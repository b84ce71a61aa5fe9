"""Entities follow records that change, move and go, and rows that cross a border: each value is right."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

YAML = """
    project: profiles
    timezone: Europe/Berlin
    sources:
      source_events: {files: "s/*.jsonl"}
      track_events: {files: "t/*.jsonl"}
      account_events: {files: "a/*.jsonl"}
    datasets:
      app_sources:
        from: source_events
        columns:
          id: id
          workspaceid: w
          name: name
          deleted: deleted
          score: {path: score, type: int}
          created_on: {path: created, type: date}
          updated_at: {path: at, type: timestamp}
        record_set: {key: [id], order_by: [updated_at]}
      app_tracks:
        from: track_events
        columns:
          workspace_id: w
          user_id: u
          amount: {path: amount, type: "decimal(18,2)"}
          sent_at: {path: at, type: timestamp}
      accounts:
        from: account_events
        columns: {id: id, org: org, workspace: w, at: {path: at, type: timestamp}}
        record_set: {key: [id], order_by: [at]}
    entities:
      workspace:
        id: workspace_id
        by: {app_sources: workspaceid}
        variables:
          live: {from: app_sources, select: "count(id)", where: "deleted = 'no'"}
          newest: {from: app_sources, select: "latest(name)"}
          two: {from: app_sources, select: "latest(id, 2)"}
          score: {from: app_sources, select: "avg(score)"}
          best: {from: app_sources, select: "max_by(name, score)"}
          created: {from: app_sources, select: count(*), window: {column: created_on, last: [1 day, 3 days]}}
          tracks: {from: app_tracks, select: count(*), window: {column: sent_at, last: [1 day, 7 days]}}
          users: {from: app_tracks, select: "count(distinct user_id)"}
          spent: {from: app_tracks, select: "sum(amount)", default: 0}
          recent: {from: app_tracks, select: "sum(amount)", where: "sent_at >= :as_of - INTERVAL 2 DAYS"}
          pace: {expr: "tracks_1d / nullif(tracks_7d, 0)", default: -1}
      org:
        id: org
        by: {app_tracks: {via: accounts, on: {workspace_id: workspace}}, workspace: workspace_id}
        variables:
          tracks: {from: app_tracks, select: "count(*)"}
          members: {from: accounts, select: "count(*)"}
          sources: {from: workspace, select: "sum(live)"}
    jobs:
      - name: busy
        input_datasets: [workspace]
        output_dataset: busy
        incremental: {mode: keyed, key: [workspace_id]}
        sql: SELECT workspace_id, users FROM workspace WHERE users > 1
"""
COLUMNS = (
    "live, newest, two, score, best, created_1d, created_3d, tracks_1d, tracks_7d, users, spent, recent, pace"
)
NO_ORG = {("w1", 0, 0, 2), ("w2", 0, 0, 0), ("w3", 0, 0, 0)}
"""The ids of workspaces name organisations too. No account has them."""


def source(name: str, workspace: str | None, at: str, **more: object) -> dict[str, object]:
    return {"id": name, "w": workspace, "at": at, "name": name.upper(), "deleted": "no", **more}


def track(workspace: str | None, user: str, at: str, amount: object = "1.50") -> dict[str, object]:
    return {"w": workspace, "u": user, "at": at, "amount": amount}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TestProject:
    """One run. Never changed; tests work on copies."""
    made = TestProject.create(tmp_path_factory.mktemp("built") / "profiles", YAML)
    made.lines(
        "s/1.jsonl",
        source("a", "w1", "2024-03-01T00:00:00Z", score=3, created="2024-03-09"),
        source("b", "w1", "2024-03-02T00:00:00Z", score=4, created="2024-03-07"),
        source("c", "w2", "2024-03-03T00:00:00Z", deleted="yes"),
        source("d", None, "2024-03-03T00:00:00Z"),
    )
    made.lines(
        "t/1.jsonl",
        track("w1", "x", "2024-03-09T12:00:00Z"),
        track("w1", "x", "2024-03-04T12:00:00Z"),
        track("w3", "y", "2024-03-10T00:00:00Z", None),
        track(None, "z", "2024-03-09T12:00:00Z"),
    )
    made.lines(
        "a/1.jsonl",
        {"id": "1", "org": "acme", "w": "w1", "at": "2024-03-01T00:00:00Z"},
        {"id": "2", "org": "acme", "w": "w1", "at": "2024-03-01T00:00:00Z"},
        {"id": "3", "org": "beta", "w": "w3", "at": "2024-03-01T00:00:00Z"},
    )
    made.run(at("2024-03-10T00:00:00+00:00"))
    return made


@pytest.fixture
def project(built: TestProject, tmp_path: Path) -> TestProject:
    return built.copy(tmp_path / "profiles")


def workspaces(project: TestProject) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in project.query(f"SELECT workspace_id, {COLUMNS} FROM workspace")}


def test_each_variable_is_computed_from_its_own_rows(built: TestProject) -> None:
    spent, none = Decimal("3.00"), Decimal("0.00")

    assert workspaces(built) == {
        "w1": (2, "B", ["b", "a"], 3.5, "B", 0, 1, 1, 2, 1, spent, Decimal("1.50"), 0.5),
        "w2": (0, "C", ["c"], None, None, 0, 0, 0, 0, 0, none, None, -1.0),
        "w3": (0, None, [], None, None, 0, 0, 0, 0, 1, none, None, -1.0),
    }
    assert built.rows("org") == {("acme", 2, 2, None), ("beta", 1, 1, None), *NO_ORG}


def test_moves_deletes_new_names_and_changed_lookups_change_old_and_new_owners(project: TestProject) -> None:
    project.lines(
        "s/2.jsonl",
        source("a", "w2", "2024-03-05T00:00:00Z", score=3),
        source("b", "w1", "2024-03-05T00:00:00Z", score=4, deleted="yes"),
        source("e", "w9", "2024-03-01T00:00:00Z", deleted="yes"),
        source("e", "w1", "2024-03-06T00:00:00Z"),
    )
    sent_at = "2024-03-09T00:00:00Z"
    project.lines("t/2.jsonl", track("w4", "x", sent_at), track(None, "x", sent_at))
    project.lines(
        "a/2.jsonl",
        {"id": "3", "org": "gamma", "w": "w1", "at": "2024-03-02T00:00:00Z"},
        {"id": "2", "org": "acme", "w": "w3", "at": "2024-03-02T00:00:00Z"},
    )

    outcome = project.run(at("2024-03-10T00:00:00+00:00"))

    task = result_of(outcome, "workspace")
    assert (task.strategy, task.cause, task.rows_written) == ("accumulate", "new_input", 4)
    assert task.counts["without_entity"] == 1
    assert {name: row[:2] for name, row in workspaces(project).items()} == {
        "w1": (1, "E"),
        "w2": (1, "A"),
        "w3": (0, None),
        "w4": (0, None),
        "w9": (0, None),
    }
    moved = {("acme", 3, 2, None), ("beta", 0, 0, None), ("gamma", 2, 1, None)}
    assert {row for row in project.rows("org") if row[0] in ("acme", "beta", "gamma")} == moved
    project.assert_verified("workspace", "org", "busy")


def test_rows_cross_borders_in_both_directions_with_and_without_data(project: TestProject) -> None:
    outcome = project.run(at("2024-03-11T00:00:00+00:00"))

    task = result_of(outcome, "workspace")
    assert (task.cause, task.strategy, task.rows_written) == ("clock", "accumulate", 2)
    assert {name: row[5:9] for name, row in workspaces(project).items()} == {
        "w1": (0, 1, 0, 2),
        "w2": (0, 0, 0, 0),
        "w3": (0, 0, 1, 1),
    }
    project.assert_verified("workspace")

    project.lines(
        "t/2.jsonl", track("w2", "y", "2024-03-05T00:00:00Z"), track("w3", "y", "2024-03-09T00:00:00Z")
    )
    project.lines("s/2.jsonl", source("b", "w3", "2024-03-11T00:00:00Z", created="2024-03-06"))
    project.run(at("2024-03-06T00:00:00+00:00"))

    assert {name: row[5:9] for name, row in workspaces(project).items()} == {
        "w1": (0, 0, 0, 1),
        "w2": (0, 0, 1, 1),
        "w3": (1, 1, 0, 0),
    }
    project.assert_verified("workspace")
