"""Fixtures for every test. One Spark session, started by the first test that needs it, serves the suite."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.harness import TestProject

_SAID = "said"
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> "TwoHalves":
    return TwoHalves(config, log)


class TwoHalves(LoadScopeScheduling):
    """With `-n 2` two processes share the suite: one runs every file that needs Spark, the other the rest.

    Each runs its half in order.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _half_of(nodeid.partition("::")[0])


@functools.cache
def _half_of(file: str) -> str:
    return "spark" if "pytest.mark.spark" in Path(__file__).parents[1].joinpath(file).read_text() else "plain"


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """A line for the summary at the end."""
    return lambda line: record_property(_SAID, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    for line in [value for report in reports for name, value in report.user_properties if name == _SAID]:
        terminalreporter.write_line(str(line))


@pytest.fixture(scope="session", autouse=True)
def _same_everywhere() -> None:
    """Spark uses two cores, and no terminal width wraps the output."""
    os.environ.setdefault("STRANDLINE_SPARK_MASTER", "local[2]")
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[[str], TestProject]:
    """A project in its own folder, from the text of its `strandline.yaml`."""
    return lambda yaml: TestProject.create(tmp_path / "project", yaml)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Published data beside the project. It is never copied into the project."""
    if not SHARED_DATA.exists():
        pytest.skip("the shared data is not beside the project")
    return SHARED_DATA
