"""A run removes the staged files of dead runs, but not those that another run uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.app.staging import find_abandoned, staged
from strandline.app.workspace import Workspace, open_workspace
from strandline.catalog import finish_run, start_run
from strandline.lake.location import Lake
from tests.unit.declare.builders import PROPERTY, write


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    write(tmp_path, PROPERTY)
    with open_workspace(tmp_path, {}) as opened:
        yield opened


def keep_aside(workspace: Workspace, *runs: str) -> None:
    for run in runs:
        folder = Path(workspace.lake.staging(run))
        folder.mkdir(parents=True)
        (folder / "rows.parquet").write_text("")


def kept(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in Path(workspace.lake.root, "_staging").iterdir())


def test_a_run_clears_what_dead_runs_left_and_its_own_at_its_end(workspace: Workspace) -> None:
    keep_aside(workspace, "dead")

    with staged(workspace, "mine"):
        keep_aside(workspace, "mine")
        assert kept(workspace) == ["mine"]

    assert kept(workspace) == []


def test_two_runs_of_one_process_leave_each_other_alone(workspace: Workspace) -> None:
    with staged(workspace, "first"):
        keep_aside(workspace, "first")
        with staged(workspace, "second"):
            keep_aside(workspace, "second")
            assert kept(workspace) == ["first", "second"]
        assert kept(workspace) == ["first"]


def test_where_others_may_write_an_open_run_is_left_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lake, "one_writer", property(lambda _: False))
    for run in ("elsewhere", "ended"):
        start_run(workspace.catalog, run, "2024-01-01T00:00:00+00:00", "run")
    finish_run(workspace.catalog, "ended", "done")
    keep_aside(workspace, "elsewhere", "ended", "unknown")

    assert find_abandoned(workspace) == ["ended", "unknown"]
