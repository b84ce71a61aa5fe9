"""A lease belongs to one run, not to other runs of the same process or of one with the same number."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from strandline.app.planning import RunRequest
from strandline.app.run import make_desk, no_session
from strandline.app.workspace import open_workspace
from strandline.catalog import acquire_lease
from strandline.model.errors import ConflictError
from strandline.model.plan import Plan
from tests.unit.declare.builders import PROPERTY, write


def test_two_runs_of_one_process_do_not_share_a_lease(tmp_path: Path) -> None:
    write(tmp_path, PROPERTY)
    with open_workspace(tmp_path, {}) as workspace:
        plan, observed = Plan(as_of=datetime(2024, 1, 1, tzinfo=UTC), tasks=()), workspace.observe()
        first, second = (
            make_desk(workspace, observed, plan, name, no_session, RunRequest())
            for name in ("run-1", "run-2")
        )
        acquire_lease(workspace.catalog, "property", first.holder, 60, 0, break_others=False)

        with pytest.raises(ConflictError) as held:
            acquire_lease(workspace.catalog, "property", second.holder, 60, 0, break_others=False)
        again = acquire_lease(workspace.catalog, "property", first.holder, 60, 0, break_others=False)

    assert held.value.slug == "lease-held"
    assert again.must_fence
