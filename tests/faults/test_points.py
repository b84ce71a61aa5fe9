"""Runs after all others: no failpoint is left that was never reached in this process."""

import pytest

from strandline.dispatch.failpoints import POINTS, hits

pytestmark = pytest.mark.faults

REACHED_BY = {
    "swap": "tests/unit/cli/test_rebuild_catalog.py",
    "fill": "tests/faults/test_outbox.py",
    "send": "tests/faults/test_outbox.py",
}
"""Who reaches the points of a step; all others are reached by the crash loop."""


def test_every_point_was_reached(request: pytest.FixtureRequest) -> None:
    """A point that nothing reaches proves nothing. What another process reached is counted there."""
    files = {item.nodeid.partition("::")[0] for item in request.session.items}
    wanted = [
        p for p in POINTS if REACHED_BY.get(p.partition("-")[2], "tests/faults/test_crash_loop.py") in files
    ]
    if not wanted:
        pytest.skip("only after the crash loop")

    missed = [point for point in wanted if not hits[point]]

    assert not missed, f"no test reached {missed}"
